package gitea

import (
	"context"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// Authors implements forge.Forge.
func (f *Forge) Authors(ctx context.Context, commit string) ([]forge.Person, error) {
	self, err := f.me(ctx)
	if err != nil {
		return nil, err
	}
	c, resp, err := f.api(ctx).GetSingleCommit(f.repo.Owner, f.repo.Name, commit)
	if err != nil {
		return nil, f.fail(call{"ask who wrote commit " + commit, needRead}, resp, err)
	}
	return []forge.Person{person(c.Author, self), person(c.Committer, self)}, nil
}
