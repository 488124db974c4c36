package source

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kustomization gathers a kustomization and all that it is built from.
func (c *collection) kustomization(dir string) error {
	if c.seen[dir+"/"] {
		return nil
	}
	c.seen[dir+"/"] = true
	if _, _, err := c.find(dir); err != nil {
		return err
	}
	if err := c.add(dir); err != nil {
		return err
	}
	var of *File
	for i := range c.files {
		if f := &c.files[i]; path.Dir(f.Path) == dir && KindOf(f.Path) == Kustomize {
			if of != nil {
				return &Error{File: f.Path, Message: fmt.Sprintf("is beside %s: one folder has one kustomization, "+
					"keep one of them", path.Base(of.Path))}
			}
			of = f
		}
	}
	if of == nil {
		return nil // the build reports it
	}
	return c.references(of.Path, of.Data)
}

const noCharts = "charts are not inflated in a kustomization: name the chart's folder in specs, or write what it " +
	"makes into a file"

// refused are the fields of a kustomization that run something, or change how others are built, in lower case:
// kustomize takes either.
var refused = map[string]string{
	"helmcharts":                  noCharts,
	"helmchartinflationgenerator": noCharts,
	"helmglobals":                 noCharts,
	"generators":                  "plugins are not run: use resources, configMapGenerator or a component",
	"transformers":                "plugins are not run: use patches, replacements, images, labels or a component",
	"validators":                  "plugins are not run: the bot's policies check specs",
	"openapi":                     "a schema is not read: merge lists with a JSON patch in place of it",
}

// places are the fields of a kustomization that name files, by the fields within them; "" for texts alone.
var places = map[string][]string{
	"patchesstrategicmerge": {""}, "crds": {""}, "configurations": {""}, "patches": {"path"},
	"patchesjson6902": {"path"}, "replacements": {"path"},
	"configmapgenerator": {"files", "envs", "env"}, "secretgenerator": {"files", "envs", "env"},
}

// references follows what a kustomization names. What is wrong with it as YAML the build says.
func (c *collection) references(file string, data []byte) error {
	var doc yaml.Node
	if yaml.Unmarshal(data, &doc) != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	for key, value := range pairs(doc.Content[0]) {
		field := strings.ToLower(key.Value)
		if why, ok := refused[field]; ok {
			return &Error{File: file, Line: key.Line, Field: key.Value, Message: why}
		}
		for _, within := range places[field] {
			for i, n := range named(value, within) {
				if isRemote(n.Value) {
					return remote(file, n, fmt.Sprintf("%s[%d]", key.Value, i))
				}
			}
		}
		if field != "resources" && field != "bases" && field != "components" {
			continue
		}
		for i, n := range value.Content {
			if err := c.reference(file, n, fmt.Sprintf("%s[%d]", key.Value, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// pairs are the keys and values of a mapping, in their order.
func pairs(n *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		if n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// named are the texts in a list, or those that a field of its elements has.
func named(list *yaml.Node, field string) []*yaml.Node {
	var out []*yaml.Node
	for _, item := range list.Content {
		if field == "" {
			out = append(out, item)
		}
		for key, value := range pairs(item) {
			if key.Value == field {
				out = append(append(out, value), value.Content...)
			}
		}
	}
	return out
}

// remotes are the beginnings of what kustomize takes for a repository or a file elsewhere.
var remotes = regexp.MustCompile(
	`(?i)^([a-z0-9+.-]+::|[^/]*://|[^/@]+@[^/]+[:/]|gh:|(www\.)?(github\.com|gitlab\.com|bitbucket\.org)[/:])|` +
		`\?(ref|version|timeout|submodules)=`)

func isRemote(name string) bool {
	_, value, _ := strings.Cut(name, "=") // a file of a generator may have a key
	return remotes.MatchString(name) || strings.Contains(value, "://")
}

func remote(file string, n *yaml.Node, field string) error {
	return &Error{File: file, Line: n.Line, Field: field, Message: fmt.Sprintf(
		"%q is in another place than this repository, and nothing is fetched: copy it into the repository, and name "+
			"its folder", n.Value)}
}

// reference follows one element of resources, bases or components.
func (c *collection) reference(file string, n *yaml.Node, field string) error {
	fail := func(format string, args ...any) error {
		return &Error{File: file, Line: n.Line, Field: field, Message: fmt.Sprintf(format, args...)}
	}
	if n.Kind != yaml.ScalarNode {
		return nil // the build says what is wrong with it
	}
	if isRemote(n.Value) {
		return remote(file, n, field)
	}
	dir := path.Dir(file)
	to := path.Join(dir, n.Value)
	switch {
	case n.Value == "":
		return fail("is empty: name a file, or a folder with a kustomization.yaml")
	case path.IsAbs(n.Value), to == "..", strings.HasPrefix(to, "../"):
		return fail("%q leads out of the repository: name a file or a folder in it, by a path from %s", n.Value, dir)
	}
	e, ok, err := c.find(to)
	if err != nil {
		return err
	}
	_, inside := below(dir, to)
	switch {
	case !ok:
		return fail("%q is not there: want a file, or a folder with a kustomization.yaml, in this repository", n.Value)
	case e.Kind == IsFolder:
		return c.kustomization(to)
	case e.Kind == IsOther:
		return fail("%q is a symbolic link or a submodule, and is not followed: name what it leads to", n.Value)
	case !inside:
		return fail("%q is a file outside of the kustomization's folder: name the folder that it is in, and give "+
			"that a kustomization.yaml", n.Value)
	}
	return nil
}
