package temporalenv

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
	"time"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// Source is a folder on a branch, which a continuous delivery tool follows.
type Source struct {
	// Repo is the folder of a bare repository on this machine.
	Repo string
	// Branch is a branch's short name.
	Branch string
	// Path is the folder in the repository; it has a kustomization.yaml. Empty means the root.
	Path string
}

// lookEvery is the time between two looks at the branch.
const lookEvery = 50 * time.Millisecond

func (s Source) String() string { return s.Repo + "@" + s.Branch + ":" + s.Path }

// Watch follows source until ctx ends, and applies each commit that it sees at the tip. A repository, branch or folder
// that does not exist yet is waited for. A commit that cannot be built leaves everything as it was (SyncFailed). It
// returns the context's error.
func (f *Fleet) Watch(ctx context.Context, source Source) error {
	w := watcher{fleet: f, source: source}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if err := w.sync(ctx); err != nil && ctx.Err() == nil && err.Error() != w.complaint {
			w.complaint = err.Error()
			f.note(Event{Kind: SyncFailed, Object: source.String(), Detail: err.Error()})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

type watcher struct {
	fleet  *Fleet
	source Source
	// seen is the commit last looked at, and built the content of the folder that was last built, whether it could be
	// applied or not.
	seen, built string
	// complaint is the last failure that was noted, so that it is noted once.
	complaint string
}

// sync applies the branch's tip if it is another one than last time.
func (w *watcher) sync(ctx context.Context) error {
	tip, err := gittest.Tip(w.source.Repo, w.source.Branch)
	if err != nil || tip == "" || tip == w.seen {
		return err
	}
	w.seen = tip
	// Commits beside the folder change nothing of it. One that is not there yet has no name.
	folder, err := git(ctx, w.source.Repo, "rev-parse", "--verify", "--quiet", tip+":"+w.source.Path)
	if err == nil && string(folder) == w.built {
		return nil
	}
	w.built = string(folder)
	objects, err := w.build(ctx, tip)
	if err != nil {
		return fmt.Errorf("commit %s: %w", tip, err)
	}
	w.complaint = ""
	return w.fleet.Reconcile(objects)
}

// build gives the objects that the folder's kustomization lists at a commit; a folder that is not there yet has none.
func (w *watcher) build(ctx context.Context, commit string) ([]Object, error) {
	if w.source.Path != "" {
		listed, err := git(ctx, w.source.Repo, "ls-tree", commit, "--", w.source.Path)
		if err != nil || len(listed) == 0 {
			return nil, err
		}
	}
	archive, err := git(ctx, w.source.Repo, "archive", "--format=tar", commit)
	if err != nil {
		return nil, err
	}
	files, err := unpack(archive)
	if err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsRootOnly
	built, err := krusty.MakeKustomizer(options).Run(files, path.Join("/", w.source.Path))
	if err != nil {
		return nil, fmt.Errorf("build %q: %w", w.source.Path, err)
	}
	stream, err := built.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("write objects: %w", err)
	}
	return ParseManifests(stream)
}

// unpack reads a tar archive into a file system in memory.
func unpack(archive []byte) (filesys.FileSystem, error) {
	files := filesys.MakeFsInMemory()
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read archive: %w", err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("read archive: %w", err)
		}
		if err := files.WriteFile(path.Join("/", header.Name), content); err != nil {
			return nil, fmt.Errorf("keep %s: %w", header.Name, err)
		}
	}
}

// git runs the native git, away from anybody's configuration.
func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TERMINAL_PROMPT=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}
