package gitlab

import (
	"context"
	"strings"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// Authors implements forge.Forge. GitLab does not say whose a commit is: the accounts are those that its e-mail
// addresses find, which are those that people made public.
func (f *Forge) Authors(ctx context.Context, commit string) ([]forge.Person, error) {
	id, err := f.id(ctx)
	if err != nil {
		return nil, err
	}
	c, resp, err := f.api.Commits.GetCommit(id, commit, nil, gl.WithContext(ctx))
	if err != nil {
		return nil, f.fail(call{"ask who wrote commit " + commit, needRead}, resp, err)
	}
	author, err := f.byMail(ctx, c.AuthorEmail)
	if err != nil {
		return nil, err
	}
	committer := author
	if c.CommitterEmail != c.AuthorEmail {
		if committer, err = f.byMail(ctx, c.CommitterEmail); err != nil {
			return nil, err
		}
	}
	return []forge.Person{author, committer}, nil
}

// byMail is the one account with an e-mail address.
func (f *Forge) byMail(ctx context.Context, address string) (forge.Person, error) {
	self, err := f.me(ctx)
	if err != nil || address == "" {
		return forge.Person{}, err
	}
	users, resp, err := f.api.Users.ListUsers(&gl.ListUsersOptions{Search: &address}, gl.WithContext(ctx))
	if err != nil {
		return forge.Person{}, f.fail(call{"ask whose e-mail address " + address + " is", needRead}, resp, err)
	}
	if len(users) != 1 {
		return forge.Person{}, nil
	}
	// Names are found too, and anybody may put an address into theirs.
	u, resp, err := f.api.Users.GetUser(users[0].ID, nil, gl.WithContext(ctx))
	if err != nil {
		return forge.Person{}, f.fail(call{"ask for the e-mail address of " + users[0].Username, needRead}, resp, err)
	}
	if !strings.EqualFold(u.PublicEmail, address) && !strings.EqualFold(u.Email, address) {
		return forge.Person{}, nil
	}
	return forge.Person{Login: users[0].Username, Self: users[0].ID == self.ID}, nil
}
