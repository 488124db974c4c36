package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// reviews checks the forge, if there is one, and its branches.
func (d *doctor) reviews(ctx context.Context, world rollout.World) {
	on, at, err := openForge(d.App, d.forge, d.repository) // the adapter itself, which tells more than every forge does
	if err != nil {
		d.fail("forge", err.Error(), "check --forge and --forge-url: docs/forges.md")
		return
	}
	if at.Kind == forge.KindNone || at.Kind == "" {
		if d.webhook != "" {
			d.warn("webhooks", "no forge is configured: webhooks to "+d.webhook+" cannot be checked",
				"push a commit: the bot's log has a line for each delivery")
		}
		d.pass("forge", "none: what wants approval is proposed on branches, and approved with rampart approve")
		return
	}
	d.accepts(ctx, on, world)
}

// accepts checks that a forge accepts the token for all that the bot does there, and that pushes and webhooks arrive.
func (d *doctor) accepts(ctx context.Context, on adapter, world rollout.World) {
	login, err := on.Login(ctx)
	var refused *forge.RefusedError
	if err != nil {
		d.fail("forge", err.Error(), "check --forge-token-file, and that the token may read and write pull requests")
		if !errors.As(err, &refused) || refused.Reason != forge.ReasonForbidden {
			return // it refuses all, or answers nothing
		}
	}
	statuses := false
	for _, env := range world.Environments {
		statuses = statuses || env.Environment.CommitStatuses != v1alpha1.NoCommitStatuses
	}
	lacks := on.Lacks(ctx, statuses)
	for _, err := range lacks {
		d.fail("forge", err.Error(), "docs/forges.md lists what the token may have to do")
	}
	if err == nil && len(lacks) == 0 {
		d.pass("forge", "accepts the token of %s, for all that the bot does there", login)
	}
	if d.webhook != "" {
		d.hooks(ctx, on)
	}
	branches := map[string]bool{}
	for _, env := range world.Environments {
		branches[cmp.Or(env.Environment.Output.Branch, d.repository.Branch)] = true
	}
	if len(branches) == 0 { // the repository could not be read
		branches[d.repository.Branch] = true
	}
	for _, branch := range cmdutil.SortedKeys(branches) {
		d.branch(ctx, on, branch)
	}
}

// hooks checks that a webhook of the repository leads to the bot, and how its last delivery went.
func (d *doctor) hooks(ctx context.Context, ask forge.Checker) {
	const name = "webhooks"
	hooks, err := ask.Hooks(ctx)
	var refused *forge.RefusedError
	if errors.As(err, &refused) {
		d.warn(name, err.Error(),
			"look at the webhooks in the repository's settings, or run this check with an administrator's token")
		return
	}
	if err != nil {
		d.fail(name, err.Error(), "run doctor again once the forge answers")
		return
	}
	i := slices.IndexFunc(hooks, func(h forge.Hook) bool {
		return strings.TrimSuffix(h.URL, "/") == strings.TrimSuffix(d.webhook, "/")
	})
	if i < 0 {
		d.fail(name, fmt.Sprintf("none of the repository's webhooks (%d) leads to %s", len(hooks), d.webhook),
			"add one: docs/webhooks.md; one of the organization or the group is not seen here")
		return
	}
	switch hook := hooks[i]; {
	case !hook.Active:
		d.fail(name, "the webhook to "+d.webhook+" is turned off",
			"turn it on in the repository's settings, once the bot answers there")
	case !hook.Pushes:
		d.fail(name, "the webhook to "+d.webhook+" does not tell of pushes",
			"docs/webhooks.md lists the events that it needs")
	case hook.Failed:
		d.fail(name, "the last delivery to "+d.webhook+" failed: "+hook.Last,
			"with 401 the secrets differ, the bot's and the webhook's; else see that the forge reaches that address")
	case hook.Last == "":
		d.pass(name, "a webhook leads to %s; the forge does not tell whether deliveries arrive", d.webhook)
	default:
		d.pass(name, "a webhook leads to %s, and the last delivery arrived: %s", d.webhook, hook.Last)
	}
}

// branch checks that the forge lets the bot push to a branch.
func (d *doctor) branch(ctx context.Context, ask forge.Checker, branch string) {
	name := "branch " + branch
	is, err := ask.Branch(ctx, branch)
	switch {
	case err != nil:
		d.warn(name, err.Error(), "see that the token may read the branch: docs/forges.md")
	case is == nil:
		d.pass(name, "is not there yet: the first push makes it")
	case !is.MayPush && is.Protected:
		d.warn(name, "is protected, and the forge does not let this account push to it",
			"let the bot bypass the rule, give it a branch of its own (output.branch in rampart.yaml), or have its "+
				"commits proposed: docs/forges.md")
	case !is.MayPush:
		d.fail(name, "the forge does not let this account push to it",
			"make the account a collaborator with the right to write")
	case is.Protected:
		d.pass(name, "is protected, and lets this account push")
	default:
		d.warn(name, "is not protected: everyone who may push to it can move traffic",
			"protect it, and let the bot push: docs/guides/protected-output.md")
	}
}
