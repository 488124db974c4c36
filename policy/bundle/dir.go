package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// maxDepth of folders, which also ends links that lead back.
const maxDepth = 16

// ReadDir reads a directory of policies: *.rego, and data in files named data.yaml, data.yml or data.json. Data is
// placed below data by the folders that it is in, as in a bundle. Names that begin with a dot are left out. Links are
// followed as long as they stay inside, as those of a mounted ConfigMap do. Whether the policies compile is not looked
// at.
func ReadDir(dir string) (policy.Layer, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return policy.Layer{}, fmt.Errorf("read policies: %w", err)
	}
	r := dirReader{root: root, dir: dir, layer: policy.Layer{Name: dir}}
	err = errors.Join(r.folder(".", 0), root.Close())
	if err == nil && len(r.layer.Modules)+len(r.layer.Data) == 0 {
		err = errors.New("it holds no *.rego and no data.yaml or data.json")
	}
	if err != nil {
		return policy.Layer{}, fmt.Errorf("read policies in %s: %w", dir, err)
	}
	return r.layer, nil
}

type dirReader struct {
	root    *os.Root
	dir     string
	layer   policy.Layer
	entries int
	size    int64
}

func (r *dirReader) folder(name string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: folders are nested more than %d deep, or a link leads back", name, maxDepth)
	}
	f, err := r.root.Open(name)
	if err != nil {
		return err
	}
	names, err := f.Readdirnames(MaxFiles + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	slices.Sort(names)
	for _, base := range names {
		if strings.HasPrefix(base, ".") {
			continue
		}
		if r.entries++; r.entries > MaxFiles {
			return fmt.Errorf("there are more than %d files", MaxFiles)
		}
		if err := r.entry(path.Join(name, base), depth); err != nil {
			return err
		}
	}
	return nil
}

func (r *dirReader) entry(name string, depth int) error {
	// Follows links, and refuses those that lead out of the directory.
	info, err := r.root.Stat(name)
	if err != nil {
		return err
	}
	base := path.Base(name)
	rego, data := strings.HasSuffix(base, ".rego"),
		slices.Contains([]string{"data.yaml", "data.yml", "data.json"}, base)
	switch {
	case info.IsDir():
		return r.folder(name, depth+1)
	case !rego && !data && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(base)):
		return fmt.Errorf("%s is not read: data is in files named data.yaml, data.yml or data.json", name)
	case !rego && !data:
		return nil
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", name)
	}
	text, err := r.read(name)
	if err != nil {
		return err
	}
	if rego {
		r.layer.Modules = append(r.layer.Modules, parse.Module{Path: r.shown(name), Source: string(text)})
		return nil
	}
	content, err := below(path.Dir(name), text)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.layer.Data = append(r.layer.Data, parse.DataFile{Path: r.shown(name), Content: content})
	return nil
}

func (r *dirReader) shown(name string) string { return filepath.ToSlash(filepath.Join(r.dir, name)) }

// read reads a file, however it grows meanwhile.
func (r *dirReader) read(name string) ([]byte, error) {
	f, err := r.root.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, parse.MaxFileSize+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	r.size += int64(len(text))
	switch {
	case len(text) > parse.MaxFileSize:
		return nil, fmt.Errorf("%s is larger than %d bytes", name, parse.MaxFileSize)
	case r.size > MaxExpanded:
		return nil, fmt.Errorf("the files are larger than %d MiB together", MaxExpanded>>20)
	}
	return text, nil
}

// below places data by its folder. In the directory itself it stays as it is written, so that messages have its lines.
func below(folder string, text []byte) (string, error) {
	if folder == "." {
		return string(text), nil
	}
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		return "", err
	}
	keys := strings.Split(folder, "/")
	for _, key := range slices.Backward(keys) {
		value = map[string]any{key: value}
	}
	out, err := json.Marshal(value)
	return string(out), err
}
