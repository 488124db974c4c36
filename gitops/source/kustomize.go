package source

import (
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// kustomize does what kustomize build does, on files in memory.
func kustomize(in Input) (Output, error) {
	fail := func(err error) error {
		return &Error{File: in.Marker, Message: "cannot be built: " + oneLine(err.Error())}
	}
	files := noting{filesys.MakeFsInMemory(), map[string]bool{}}
	for _, f := range in.Files {
		if err := files.WriteFile("/"+f.Path, f.Data); err != nil {
			return Output{}, fail(err)
		}
	}
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsRootOnly
	options.PluginConfig = types.DisabledPluginConfig()
	built, err := krusty.MakeKustomizer(options).Run(files, "/"+in.Dir())
	if err != nil {
		return Output{}, fail(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		return Output{}, fail(err)
	}
	return Output{Parts: []Part{{in.Marker, text}}, Used: slices.Sorted(maps.Keys(files.read))}, nil
}

// noting is a file system that notes which files are read.
type noting struct {
	filesys.FileSystem
	read map[string]bool
}

// ReadFile reads a file.
func (n noting) ReadFile(name string) ([]byte, error) {
	data, err := n.FileSystem.ReadFile(name)
	if err == nil {
		n.read[strings.TrimPrefix(name, "/")] = true
	}
	return data, err
}

// oneLine is a message of a library on one line; of a long one what it begins and ends with, which is where and what.
func oneLine(text string) string {
	const most = 400
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 2*most {
		text = strings.ToValidUTF8(text[:most], "") + " ... " + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return text
}
