package cmdutil

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// DecodeSnapshot decodes the JSON that rampart observe prints. Unknown fields are an error.
func DecodeSnapshot(data []byte) (rollout.World, error) {
	var world rollout.World
	// What is embedded as JSON (templates, inputs of gates) goes into hashes as it is written: without white space.
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return world, fmt.Errorf("want JSON, as rampart observe prints it without -o yaml: %w", err)
	}
	dec := json.NewDecoder(&compact)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&world); err != nil {
		return world, fmt.Errorf("it is not what rampart observe of this version writes: %w", err)
	}
	if world.Environments == nil && len(world.Problems) == 0 {
		return world, errors.New("it has no environments: want what rampart observe writes")
	}
	return world, nil
}

// ReadInput reads a file, or standard input for the name "-".
func (a *App) ReadInput(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(a.In)
	}
	return os.ReadFile(name)
}

// StoppableReader gives a reader whose reads end with the context, with its error. A read from a terminal or a pipe
// that is waiting then goes on waiting, and what it reads is lost.
func StoppableReader(ctx context.Context, r io.Reader) io.Reader { return stoppable{ctx, r} }

type stoppable struct {
	ctx context.Context // io.Reader has none
	in  io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data := make([]byte, min(len(p), 64<<10)) // not p, which is the caller's again once the context has ended
		n, err := s.in.Read(data)
		done <- result{data[:n], err}
	}()
	select {
	case r := <-done:
		return copy(p, r.data), r.err
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

// IsFile reports whether a regular file has that name.
func IsFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// CheckFolder returns an error unless a folder has that name.
func CheckFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return notThere(dir, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	return nil
}

// notThere says where a file or folder was looked for that a person named.
func notThere(name string, err error) error {
	here, wdErr := os.Getwd()
	if !errors.Is(err, fs.ErrNotExist) || filepath.IsAbs(name) || wdErr != nil {
		return err
	}
	return fmt.Errorf("%w; paths count from %s", err, here)
}

// WalkFiles gives a file, or the files below a folder with one of the extensions. Without extensions it takes those
// that may hold objects. It does not follow links, as in a repository.
func WalkFiles(name string, extensions ...string) ([]string, error) {
	if len(extensions) == 0 {
		extensions = []string{".yaml", ".yml", ".json"}
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, notThere(name, err)
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	var out []string
	// the separator at the end has the folder itself followed where its name is a link
	err = filepath.WalkDir(name+string(filepath.Separator), func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.EqualFold(d.Name(), ".git"):
			return filepath.SkipDir
		case d.Type().IsRegular() && slices.Contains(extensions, filepath.Ext(p)):
			out = append(out, p)
		}
		return nil
	})
	return out, err
}

// FilesBelow gives the files that WalkFiles finds below a folder, by their paths from there, with slashes.
func FilesBelow(dir string, extensions ...string) ([]string, error) {
	files, err := WalkFiles(dir, extensions...)
	if err != nil {
		return nil, err
	}
	for i, f := range files {
		below, err := filepath.Rel(dir, f)
		if err != nil {
			return nil, err
		}
		files[i] = filepath.ToSlash(below)
	}
	return files, nil
}

// ReadFile reads a file of a repository, up to one byte more than tree.MaxFileSize: the decoder refuses the larger
// ones.
func ReadFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	text, err := readLimited(f)
	return text, errors.Join(err, f.Close())
}

// readLimited reads one byte more than is allowed at most: who decodes it says that it is too large.
func readLimited(r io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, tree.MaxFileSize+1))
	return string(data), err
}
