package specs

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/report"
)

const (
	formatMarkdown = "markdown"
	formatGitHub   = "github"
)

type previewFlags struct{ base, head, at string }

func previewCommand(a *cmdutil.App) *cobra.Command {
	var (
		output cmdutil.Choice
		ask    previewFlags
	)
	cmd := &cobra.Command{
		Use:   "preview",
		Short: "Show what merging a change would do: versions, manifests, policies, timetable; no Temporal, no network",
		Long: `Preview shows, for each worker deployment that a change touches (directly, or through a connection or
a template of objects), what merging it would do: a new version or a rolling update, how the manifests change, which
policies object, and how the rollout goes, simulated. It is made for pull requests, those of strangers included.

It reads the commits --base and --head from the Git repository that -C is in, which may be a bare one, and nothing
else: no work tree, no network, no Temporal, no secrets. What changed is what is between --head and the commit that
both have in common; what is previewed is that on top of --base as it is now.

The change is judged by its base: rampart.yaml, policies, data and waivers are those of --base, and so are the
records. A change of these is reported and judges nothing; it is checked for errors only. A file that both sides
changed is taken from the change, with a warning.

What cannot be known is said, and never counted as fine: where Temporal's traffic is comes from the record; rules
that go by metrics, by failures or by the merge's commit are listed as unknown. --policy-dir gives policies of the
bot's own; of --policy-bundle only what is in --cache-dir counts, since nothing is downloaded.

Formats: text; markdown, at most 65 000 bytes, for a comment or the summary of a job; github, annotations of GitHub
Actions; json and yaml. Exit code 0 if no policy objects, 2 if one holds the rollout for good or turns it back, 1 if
the change has errors or could not be read. What only waits, for a freeze to end or for an approval, does not count
as an objection.`,
		Example: `  rampart preview --base origin/main
  rampart preview --base origin/main --head feature -o markdown
  rampart preview -C repo.git --base refs/heads/main --head refs/pull/7/head -o github
  rampart preview --base origin/main --at 2030-12-20T15:00:00Z -o json`,
		Args:              cmdutil.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ask.base == "" {
				return errors.New("--base says where the change goes: a branch such as origin/main, a tag, or a " +
					"whole hash")
			}
			p, err := previewChange(cmd.Context(), a, ask)
			if err != nil {
				return err
			}
			return printPreview(a, output.Value, p)
		},
	}
	cmdutil.AddOutput(cmd, &output, cmdutil.FormatText, formatMarkdown, formatGitHub, cmdutil.FormatJSON,
		cmdutil.FormatYAML)
	cmdutil.AddPolicies(a, cmd)
	f := cmd.Flags()
	f.StringVar(&ask.base, "base", "",
		"commit that the change goes on, and that judges it: a branch such as origin/main, a tag, a whole hash")
	f.StringVar(&ask.head, "head", "HEAD", "the change: a branch, a tag, HEAD, a whole hash")
	f.StringVar(&ask.at, "at", "", "when it is merged, such as 2026-01-31T12:00:00Z (default: now)")
	cmdutil.CompleteFlag(cmd, "base", a.CompleteRevisions)
	cmdutil.CompleteFlag(cmd, "head", a.CompleteRevisions)
	return cmd
}

// printPreview prints a preview. One that a policy objects to, or that has errors, is not fine.
func printPreview(a *cmdutil.App, format string, p report.Preview) error {
	var err error
	switch format {
	case cmdutil.FormatText:
		err = p.WriteText(a.Out, a.Style())
	case formatMarkdown:
		_, err = fmt.Fprint(a.Out, p.Markdown())
	case formatGitHub:
		err = p.WriteAnnotations(a.Out)
	default:
		err = a.Encode(format, p)
	}
	switch {
	case err != nil:
		return err
	case p.Outcome == report.PreviewBroken:
		return &cmdutil.ExitError{Code: cmdutil.ExitFailure}
	case p.Outcome == report.PreviewObjected:
		return cmdutil.Pending(nil)
	}
	return nil
}

func previewChange(ctx context.Context, a *cmdutil.App, ask previewFlags) (p report.Preview, err error) {
	script, err := script(a, simulation{at: ask.at})
	if err != nil {
		return p, err
	}
	r, err := openPreview(ctx, a, ask)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	return r.run(ctx, script)
}
