package bot

import (
	"cmp"
	"context"
	"time"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/commitstatus"
)

// onceStatusPatience is how long a bot that runs one cycle waits for commit statuses. It has no later cycle to use a
// late answer.
const onceStatusPatience = 10 * time.Second

// commitStatuses writes the bot's commit statuses, and reads those of others. Both fields are nil without a forge.
type commitStatuses struct {
	writer *commitstatus.Writer
	reader *commitstatus.Reader
}

// newCommitStatuses begins to read and write statuses at a forge.
func newCommitStatuses(a *cmdutil.App, f botFlags, repo *gitops.Repository, on located) commitStatuses {
	if on.at.Kind == forge.KindNone || on.at.Kind == "" {
		return commitStatuses{}
	}
	link := func(env v1alpha1.Environment, dir string) string {
		return on.at.Folder(cmp.Or(env.Output.Branch, f.repository.Branch), dir)
	}
	patience := commitstatus.DefaultPatience
	if f.once {
		patience = onceStatusPatience
	}
	return commitStatuses{
		writer: commitstatus.NewWriter(commitstatus.WriterConfig{Origins: repo, Forge: on.forge, Link: link, Now: a.Now,
			Log: a.Log}),
		reader: commitstatus.NewReader(commitstatus.ReaderConfig{Commits: repo, Forge: on.forge, Where: on.at.URL(),
			Patience: patience, Now: a.Now, Log: a.Log}),
	}
}

// close says what is left to be said, for so long at most.
func (s commitStatuses) close(most time.Duration) {
	if s.writer == nil {
		return
	}
	s.reader.Close()
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	s.writer.Close(ctx)
}
