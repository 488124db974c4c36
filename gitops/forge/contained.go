package forge

import (
	"context"
	"fmt"
)

// Contained is a forge whose library may break over what it is answered: a panic in a call is a *RefusedError with
// ReasonReply. What takes traffic back runs in the same process.
func Contained(f Forge) Forge { return contained{f} }

type contained struct{ next Forge }

var _ Forge = contained{}

// broken tells of a panic.
func (contained) broken(op string, err *error) {
	if why := recover(); why != nil {
		*err = &RefusedError{Op: op, Where: "the forge", Reason: ReasonReply,
			Said: fmt.Sprintf("its answer broke what reads it: %v", why)}
	}
}

func (c contained) Login(ctx context.Context) (login string, err error) {
	defer c.broken("ask whose token it is", &err)
	return c.next.Login(ctx)
}

func (c contained) List(ctx context.Context, f Filter) (all []PullRequest, err error) {
	defer c.broken("list pull requests", &err)
	return c.next.List(ctx, f)
}

func (c contained) Get(ctx context.Context, number int64) (d Details, err error) {
	defer c.broken("get a pull request", &err)
	return c.next.Get(ctx, number)
}

func (c contained) Authors(ctx context.Context, commit string) (people []Person, err error) {
	defer c.broken("ask who wrote a commit", &err)
	return c.next.Authors(ctx, commit)
}

func (c contained) Open(ctx context.Context, o Opening) (pr PullRequest, err error) {
	defer c.broken("open a pull request", &err)
	return c.next.Open(ctx, o)
}

func (c contained) Update(ctx context.Context, number int64, change Change) (err error) {
	defer c.broken("update a pull request", &err)
	return c.next.Update(ctx, number, change)
}

func (c contained) Merge(ctx context.Context, number int64, m Merge) (became Merging, err error) {
	defer c.broken("merge a pull request", &err)
	return c.next.Merge(ctx, number, m)
}

func (c contained) SetStatus(ctx context.Context, commit string, s Status) (err error) {
	defer c.broken("set a commit status", &err)
	return c.next.SetStatus(ctx, commit, s)
}

func (c contained) Statuses(ctx context.Context, commit string) (all []Status, err error) {
	defer c.broken("read commit statuses", &err)
	return c.next.Statuses(ctx, commit)
}
