package gitops

import (
	"cmp"
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Root is the absolute path of the work tree that the folder is in, or of the bare repository.
func (c *Clone) Root() string { return c.root }

// Prefix is the folder that is read, below Root, with slashes; "." for all of it.
func (c *Clone) Prefix() string { return path.Clean(c.prefix) }

// Remote is the name of the remote that the clone is of. It is origin, or the only one; "" where there is none, and in
// a bare repository.
func (c *Clone) Remote() (string, error) {
	if c.root == c.dir && isGitDir(c.root) {
		return "", nil
	}
	cfg, err := c.store.Config()
	if err != nil {
		return "", err
	}
	if _, ok := cfg.Remotes[defaultRemote]; ok || len(cfg.Remotes) != 1 {
		if ok {
			return defaultRemote, nil
		}
		return "", nil
	}
	for name := range cfg.Remotes {
		return name, nil
	}
	return "", nil
}

const defaultRemote = "origin"

// RemoteURL is the address of that remote, as a Repository takes it; "" without one.
func (c *Clone) RemoteURL() (string, error) {
	name, err := c.Remote()
	if err != nil || name == "" {
		return "", err
	}
	cfg, err := c.store.Config()
	if err != nil {
		return "", err
	}
	urls := cfg.Remotes[name].URLs
	switch {
	case len(urls) == 0:
		return "", nil
	case filepath.IsAbs(urls[0]):
		return "file://" + urls[0], nil
	}
	return urls[0], nil
}

// Published names the commit that a bot on a branch reads, as far as the clone knows: the remote's branch, else the
// clone's own. Without either it is what the remote has checked out, or the clone itself, and found is false. Errors:
// *NoRefError in a clone without a commit.
func (c *Clone) Published(branch string) (tip Tip, found bool, err error) {
	remote, err := c.Remote()
	if err != nil {
		return Tip{}, false, err
	}
	own, remotes := "refs/heads/"+branch, "refs/remotes/"+cmp.Or(remote, defaultRemote)+"/"
	names := []string{remotes + branch, own}
	if remote != "" {
		names = append(names, remotes+"HEAD")
	}
	names = append(names, string(plumbing.HEAD))
	for i, name := range names {
		ref, refErr := storer.ResolveReference(c.store, plumbing.ReferenceName(name))
		if refErr != nil {
			err = &NoRefError{c.dir, name}
			continue
		}
		commit, err := c.Commit(ref.Hash())
		return Tip{Name: ref.Name().String(), Commit: ref.Hash().String(), When: commit.Committer.When.UTC()},
			i <= slices.Index(names, own), err
	}
	return Tip{}, false, err
}

// Narrow has the clone read from the nearest folder with a rampart.yaml in the commit, from the folder that it was
// opened by upwards. Without one, the clone is read as a whole. False: the commit does not have the folder that the
// clone was opened by.
func (c *Clone) Narrow(tip Tip) (bool, error) {
	commit, err := c.Commit(plumbing.NewHash(tip.Commit))
	if err != nil {
		return false, err
	}
	at := c.Prefix()
	if at != "." {
		if _, ok, err := c.Lookup(commit.Tree, at); err != nil || !ok {
			return false, err
		}
	}
	for ; at != "."; at = path.Dir(at) {
		if _, ok, err := c.Lookup(commit.Tree, path.Join(at, layout.Config)); err != nil || ok {
			c.prefix = at
			return true, err
		}
	}
	c.prefix = "."
	return true, nil
}

// ReadAt reads the world of a commit that the clone has, with the outputs as it knows them of its remote, then of its
// own. absent are the branches of outputs that it does not have.
func (c *Clone) ReadAt(ctx context.Context, tip Tip,
	options ...index.Option) (world rollout.World, absent []string, err error) {
	t, err := c.treeOf(plumbing.NewHash(tip.Commit))
	if err != nil {
		return world, nil, err
	}
	git := rollout.GitContext{Branch: branchOf(plumbing.ReferenceName(tip.Name))}
	outputs := &cloneOutputs{ctx: ctx, clone: c, tree: t, tip: tip, branch: git.Branch}
	world, err = index.NewReader(options...).Read(t, outputs.of, git)
	return world, outputs.absent, err
}

// cloneOutputs are what the bot wrote beside a tree: on the branch that the tree is of, or on others as the clone has
// them.
type cloneOutputs struct {
	ctx   context.Context
	clone *Clone
	tree  tree.Tree
	tip   Tip
	// branch of the tree, "" where it is of none.
	branch string
	// absent are branches that the clone does not have.
	absent []string
}

// of gives the tree of an environment's output, and the commit that it is of.
func (o *cloneOutputs) of(env v1alpha1.Environment) (tree.Tree, string, error) {
	if err := o.ctx.Err(); err != nil {
		return nil, "", err
	}
	if env.Output.Branch == "" || env.Output.Branch == o.branch {
		return o.tree, o.tip.Commit, nil
	}
	tip, err := o.clone.branchTip(env.Output.Branch)
	if _, ok := errors.AsType[*NoRefError](err); ok {
		o.absent = append(o.absent, env.Output.Branch)
		return tree.Gathered{}, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	t, err := o.clone.treeOf(tip.Commit)
	return t, tip.Commit.String(), err
}

// branchTip is a branch as the clone knows it of its remote, then as its own. Where no remote is configured, a pipeline
// may have brought the branch as one of origin. Errors: *NoRefError.
func (c *Clone) branchTip(branch string) (git.Tip, error) {
	remote, err := c.Remote()
	if err != nil || remote == "" {
		remote = defaultRemote
	}
	if tip, err := c.tip("refs/remotes/" + remote + "/" + branch); err == nil {
		return tip, nil
	}
	return c.tip("refs/heads/" + branch)
}

// branchOf is the name that a branch has at its server, "" for a reference that is not a branch.
func branchOf(ref plumbing.ReferenceName) string {
	switch {
	case ref.IsRemote():
		_, branch, _ := strings.Cut(strings.TrimPrefix(ref.String(), "refs/remotes/"), "/")
		return branch
	case ref.IsBranch():
		return ref.Short()
	}
	return ""
}
