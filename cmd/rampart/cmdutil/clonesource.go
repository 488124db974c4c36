package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// CloneHelp is the part of a help text about commands that read what was pushed.
const CloneHelp = `In a clone the command fetches from the clone's remote with git (--offline: it does not), and
reads the commit that the remote's --branch is at, not the work tree; it says which commit that is and how old. A
folder inside a repository means that repository, unless the folder has a rampart.yaml. A folder outside of any is
read as it is on disk.`

// OpenPublished opens what a command reads that tells what the bot wrote. That is the branch of --repo, else the clone
// that the folder -C is in, else the folder. close releases it.
func (a *App) OpenPublished(f RepositoryFlags) (source reconcile.Source, close func() error, err error) {
	if f.URL != "" {
		return a.OpenSource(f)
	}
	if err := CheckFolder(a.Dir); err != nil {
		return nil, nil, err
	}
	return a.NarrowSource(a.CloneSource(f)), func() error { return nil }, nil
}

// CloneSource gives the source that reads the clone which the folder -C is in.
func (a *App) CloneSource(f RepositoryFlags) *CloneSource {
	return &CloneSource{App: a, flags: f, folder: folder{a.Dir, a.ReadOptions()}}
}

// CloneSource reads a person's clone as its remote has it, and says which commit that is. Each read opens the clone
// anew, since a fetch adds to its files.
type CloneSource struct {
	*App
	flags  RepositoryFlags
	folder folder
	// tip is the commit that was read last.
	tip gitops.Tip
	// said are the lines that were said already.
	said map[string]bool
}

var _ reconcile.Source = (*CloneSource)(nil)

// once says a line unless it was said before.
func (c *CloneSource) once(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if c.said == nil {
		c.said = map[string]bool{}
	}
	if !c.said[line] {
		c.said[line] = true
		c.Say("%s", line)
	}
}

// Read fetches, and gives the world of the commit.
func (c *CloneSource) Read(ctx context.Context) (world rollout.World, err error) {
	clone, err := gitops.OpenClone(c.Dir)
	var none *gitops.NoCloneError
	if errors.As(err, &none) {
		return c.folder.Read(ctx)
	}
	if err != nil {
		return world, err
	}
	defer func() { err = errors.Join(err, clone.Close()) }()
	fetched, err := c.fetch(ctx, clone)
	if err != nil {
		return world, err
	}
	if fetched { // it has files that were not there when it was opened
		if err := clone.Close(); err != nil {
			return world, err
		}
		if clone, err = gitops.OpenClone(c.Dir); err != nil {
			return world, err
		}
	}
	tip, known, err := clone.Published(c.flags.Branch)
	var noCommit *gitops.NoRefError
	if errors.As(err, &noCommit) {
		c.once("the repository %s has no commit yet: the folder is read as it is on disk", clone.Root())
		return c.folder.Read(ctx)
	}
	if err != nil {
		return world, err
	}
	if !known && c.flags.branchGiven() {
		return world, fmt.Errorf("the clone %s knows no branch %q", clone.Root(), c.flags.Branch)
	}
	below := clone.Prefix()
	if there, err := clone.Narrow(tip); err != nil || !there {
		if err == nil {
			c.once("commit %s has no folder %s: it is read as it is on disk", ShortHash(tip.Commit), below)
		}
		return c.folder.Read(ctx)
	}
	c.sayCommit(clone, tip, known, fetched)
	if below != clone.Prefix() {
		c.once("%s is in the repository %s, which is read", c.Dir, filepath.Join(clone.Root(), clone.Prefix()))
	}
	c.tip = tip
	world, absent, err := clone.ReadAt(ctx, tip, c.folder.options...)
	for _, branch := range absent {
		c.once("the branch %s, which an environment writes to, is not in the clone: what the bot wrote there is "+
			"not known", branch)
	}
	return world, err
}

// sayCommit says which commit is read and how old it is, once for each commit.
func (c *CloneSource) sayCommit(clone *gitops.Clone, tip gitops.Tip, known, fetched bool) {
	if c.tip.Commit == tip.Commit {
		return
	}
	name := tip.Name
	for _, prefix := range []string{"refs/remotes/", "refs/heads/"} {
		name = strings.TrimPrefix(name, prefix)
	}
	remote, err := clone.Remote()
	ofRemote := strings.HasPrefix(tip.Name, "refs/remotes/") || err != nil || remote == ""
	if !known || !ofRemote {
		name += fmt.Sprintf(", since the clone knows no branch %s of a remote", c.flags.Branch)
	}
	line := fmt.Sprintf("read: commit %s of %s, made %s ago (%s)", ShortHash(tip.Commit), name,
		report.Age(c.Now().Sub(tip.When)), FormatTime(tip.When))
	if err == nil && remote != "" && !fetched {
		line += "; not fetched: the remote may be ahead"
	}
	c.Say("%s", line)
}

// Touches reads the history of the commit that was read.
func (c *CloneSource) Touches(ctx context.Context, q gitops.HistoryQuery) (out gitops.Touched, err error) {
	clone, err := gitops.OpenClone(c.Dir)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, clone.Close()) }()
	if c.tip.Commit != "" {
		if _, err := clone.Narrow(c.tip); err != nil {
			return out, err
		}
		if q.Branch == "" {
			q.Commit = c.tip.Commit
		}
	}
	return clone.Touches(ctx, q)
}

// maxFetch bounds one fetch into a clone.
const maxFetch = 2 * time.Minute

// fetch brings the clone up to date by git, which has the person's credentials, and with it the refs of decisions. What
// cannot be fetched is said: the clone is read as it is.
func (c *CloneSource) fetch(ctx context.Context, clone *gitops.Clone) (fetched bool, err error) {
	remote, err := clone.Remote()
	if err != nil || remote == "" || c.flags.offline {
		return false, err
	}
	within, cancel := context.WithTimeout(ctx, maxFetch)
	defer cancel()
	wanted := [][]string{{remote}}
	if ref := c.flags.DecisionRef; ref != "" && !strings.HasPrefix(ref, "refs/heads/") {
		wanted = append(wanted, []string{remote, "+" + ref + "/*:" + ref + "/*"}) // a pattern may match nothing
	}
	for _, args := range wanted {
		if err := gitFetch(within, clone.Root(), args); err != nil {
			c.once("not fetched from %s: %v", remote, err)
			return false, ctx.Err()
		}
	}
	return true, nil
}

// gitFetch runs git fetch. It asks for no password: that would be in the middle of another command's output.
func gitFetch(ctx context.Context, dir string, args []string) error {
	cmd := exec.CommandContext(ctx, "git", slices.Concat([]string{"-C", dir, "fetch", "--quiet", "--no-tags",
		"--no-write-fetch-head"}, args)...)
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0")
	cmd.WaitDelay = time.Second
	var said strings.Builder
	cmd.Stderr = &said
	err := cmd.Run()
	if text := printable.Line(strings.TrimSpace(said.String())); err != nil && text != "" {
		return errors.New(text)
	}
	return err
}

// ShortHash gives the first 9 characters of a commit's hash, which tell it from others.
func ShortHash(hash string) string { return hash[:min(len(hash), 9)] }

// FormatTime formats a time to the second, in UTC.
func FormatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
