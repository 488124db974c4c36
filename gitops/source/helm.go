package source

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/ignore"
)

// helm does what helm template does, without a cluster: as an installation by the name of the chart's folder.
func helm(in Input) (Output, error) {
	c, err := loaded(in)
	if err != nil {
		return Output{}, err
	}
	fail := func(err error) error {
		return &Error{File: in.Marker, Message: "cannot be rendered: " + oneLine(err.Error())}
	}
	values, err := in.values()
	if err != nil {
		return Output{}, err
	}
	if missing := missing(c); len(missing) > 0 {
		return Output{}, &Error{File: in.Marker, Field: "dependencies", Message: fmt.Sprintf(
			"%s: not in charts/, and nothing is fetched: run helm dependency update, and commit charts/",
			strings.Join(missing, ", "))}
	}
	if err := util.ProcessDependencies(c, values); err != nil {
		return Output{}, fail(err)
	}
	release := common.ReleaseOptions{Name: path.Base(in.Dir()), Namespace: in.Namespace, Revision: 1, IsInstall: true}
	// that validation opens files and addresses
	all, err := commonutil.ToRenderValuesWithSchemaValidation(c, values, release, capabilities(), true)
	if err != nil {
		return Output{}, fail(err)
	}
	if given, ok := all["Values"].(common.Values); ok {
		if err := checkSchema(c, given); err != nil {
			return Output{}, fail(err)
		}
	}
	// Process kills this process where a build takes too long.
	texts, err := engine.Engine{CustomTemplateFuncs: functions()}.RenderWithContext(context.Background(), c, all)
	if err != nil {
		return Output{}, fail(err)
	}
	out := Output{Used: in.used()}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if path.Base(name) == "NOTES.txt" || strings.TrimSpace(texts[name]) == "" {
			continue
		}
		file, _ := strings.CutPrefix(name, c.Name()+"/")
		out.Parts = append(out.Parts, Part{path.Join(in.Dir(), file), []byte(texts[name])})
	}
	return out, nil
}

// loaded is the chart.
func loaded(in Input) (*chart.Chart, error) {
	rules := ignore.Empty()
	for _, f := range in.Files {
		if f.Path == path.Join(in.Dir(), ignore.HelmIgnore) {
			var err error
			if rules, err = ignore.Parse(bytes.NewReader(f.Data)); err != nil {
				return nil, &Error{File: f.Path, Message: oneLine(err.Error())}
			}
		}
	}
	rules.AddDefaults()
	var files []*archive.BufferedFile
	for _, f := range in.Files {
		if name, ok := below(in.Dir(), f.Path); ok && !ignored(rules, name) {
			files = append(files, &archive.BufferedFile{Name: name,
				Data: bytes.TrimPrefix(f.Data, []byte("\xef\xbb\xbf"))})
		}
	}
	c, err := loader.LoadFiles(files)
	if err != nil {
		return nil, &Error{File: in.Marker, Message: "is not a chart that can be loaded: " + oneLine(err.Error())}
	}
	if c.Metadata.Type == "library" {
		return nil, &Error{File: in.Marker, Field: "type",
			Message: "is a library, which renders nothing by itself: name the chart that uses it"}
	}
	return c, nil
}

// ignored reports whether .helmignore leaves out a file, or a folder that it is in.
func ignored(rules *ignore.Rules, name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if rules.Ignore(dir, (&tar.Header{Name: dir, Typeflag: tar.TypeDir}).FileInfo()) {
			return true
		}
	}
	return rules.Ignore(name, (&tar.Header{Name: name}).FileInfo())
}

// values are those of the values files, the later over the earlier.
func (in Input) values() (map[string]any, error) {
	out := map[string]any{}
	for _, v := range in.Values {
		name := in.valuesAt(v)
		at := slices.IndexFunc(in.Files, func(f File) bool { return f.Path == name })
		if at < 0 {
			return nil, &Error{File: in.Marker, Message: name + " was not given"}
		}
		values, err := loader.LoadValues(bytes.NewReader(in.Files[at].Data))
		if err != nil {
			return nil, &Error{File: name, Message: "is not a file of values: " + oneLine(err.Error())}
		}
		out = loader.MergeMaps(out, values)
	}
	return out, nil
}

// missing are dependencies that charts/ does not have.
func missing(c *chart.Chart) []string {
	var out []string
	for _, d := range c.Metadata.Dependencies {
		if !slices.ContainsFunc(c.Dependencies(), func(has *chart.Chart) bool { return has.Name() == d.Name }) {
			out = append(out, d.Name)
		}
	}
	return out
}

// used are the files that the chart is made of: what is beside them counts only where a template may read it.
func (in Input) used() []string {
	own := []string{util.ChartfileName, "Chart.lock", util.ValuesfileName, util.SchemafileName, "requirements.yaml",
		"requirements.lock", ignore.HelmIgnore}
	reads := slices.ContainsFunc(in.Files, func(f File) bool {
		return bytes.Contains(f.Data, []byte(".Files")) || strings.HasSuffix(f.Path, ".tgz")
	})
	var out []string
	for _, f := range in.Files {
		name, inside := below(in.Dir(), f.Path)
		if !inside || reads || slices.Contains(own, name) || strings.HasPrefix(name, util.TemplatesDir+"/") ||
			strings.HasPrefix(name, util.ChartsDir+"/") ||
			slices.ContainsFunc(in.Values, func(v string) bool { return in.valuesAt(v) == f.Path }) {
			out = append(out, f.Path)
		}
	}
	return out
}

// capabilities are what templates see of a cluster: always the same, whatever release of Helm's library this is built
// with.
func capabilities() *common.Capabilities {
	return &common.Capabilities{KubeVersion: common.KubeVersion{Version: "v1.34.0", Major: "1", Minor: "34"},
		APIVersions: common.VersionSet{"v1", "apps/v1", "autoscaling/v2", "batch/v1", "networking.k8s.io/v1",
			"policy/v1", "rbac.authorization.k8s.io/v1", "temporal.io/v1alpha1"}}
}
