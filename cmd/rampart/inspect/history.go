package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

type historyFlags struct {
	repository cmdutil.RepositoryFlags
	ref        string
	since      cmdutil.Since
	most       int
}

func historyCommand(a *cmdutil.App) *cobra.Command {
	var (
		output cmdutil.Choice
		f      historyFlags
	)
	cmd := &cobra.Command{
		Use:   "history NAME",
		Short: "Show who changed a rollout, when and why",
		Long: `History tells what happened to a worker deployment, the newest first: the commits of persons and of
the bot that touched its spec or its record, and the decisions that the bot recorded about it (rampart run
--record-decisions), with the rules that fired and the waivers that were applied. It reads the branch of --repo, or
the clone that the folder -C is in; where decisions are not recorded the commits tell the story alone.

` + cmdutil.CloneHelp,
		Example: `  rampart history payments/checkout
  rampart history checkout --since 30d -n 50 --repo https://git.example.com/team/workers.git
  rampart history payments/checkout -o json`,
		Args:              cmdutil.OneName,
		ValidArgsFunction: a.CompleteName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.most < 0 {
				return fmt.Errorf("-n has to be 0 (no limit) or more, not %d", f.most)
			}
			h, err := history(cmd.Context(), a, args[0], f)
			if err != nil {
				return err
			}
			return a.Print(output.Value, h, func() error { return h.WriteText(a.Out, a.Style()) })
		},
	}
	cmdutil.AddOutput(cmd, &output, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML)
	f.repository.AddPublished(cmd)
	cmdutil.AddDecisionRef(cmd, &f.ref)
	cmd.Flags().Var(&f.since, "since", "how far back to look, such as 30d, 12h, 2026-03-01 (default: to the beginning)")
	cmd.Flags().IntVarP(&f.most, "number", "n", 20, "how many entries to show; 0: all")
	return cmd
}

// toucher reads the history of files.
type toucher interface {
	Touches(ctx context.Context, q gitops.HistoryQuery) (gitops.Touched, error)
}

var _ toucher = (*cmdutil.CloneSource)(nil)

// subjectOfHistory is what a story is about.
type subjectOfHistory struct {
	environment, branch string
	deployment          rollout.Name
	// spec is the path of its file, "" when it is gone; record is the folder of its record.
	spec, record string
}

func history(ctx context.Context, a *cmdutil.App, name string, f historyFlags) (h report.History, err error) {
	f.repository.DecisionRef = f.ref
	source, touches, closeAll, err := openHistory(a, f.repository)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	world, err := source.Read(ctx)
	if err != nil {
		return h, err
	}
	s, missing := storyOf(world, name)
	if missing != nil && len(s) == 0 {
		return h, a.SayWorldProblems(world, missing)
	}
	for _, subject := range s {
		h = report.History{Environment: subject.environment, Name: subject.deployment.String()}
		if err := tell(ctx, a, touches, teller{subject, f, &h}); err != nil {
			return h, err
		}
		if len(h.Events) > 0 {
			return h, nil
		}
	}
	return h, missing
}

// openHistory opens where the world and its history are read from.
func openHistory(a *cmdutil.App, f cmdutil.RepositoryFlags) (reconcile.Source, toucher, func() error, error) {
	if f.URL != "" {
		repo, closeRepo, err := a.OpenShortLived(f)
		if err != nil {
			return nil, nil, nil, err
		}
		return a.NarrowSource(repo), repo, closeRepo, nil
	}
	clone, err := gitops.OpenClone(a.Dir)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := clone.Close(); err != nil {
		return nil, nil, nil, err
	}
	source := a.CloneSource(f)
	return a.NarrowSource(source), source, func() error { return nil }, nil
}

// storyOf finds the worker deployment that is named. One that is gone may have been in any environment; the error says
// that it is gone.
func storyOf(world rollout.World, name string) ([]subjectOfHistory, error) {
	s, err := cmdutil.Deployment(world, name)
	if err == nil {
		return []subjectOfHistory{{s.Environment.Name, s.Environment.Output.Branch, s.Deployment, s.SpecPath,
			path.Clean(s.Record.Dir)}}, nil
	}
	namespace, short, full := strings.Cut(name, "/")
	if !full {
		return nil, err
	}
	var out []subjectOfHistory
	for _, env := range world.Environments {
		e := env.Environment
		out = append(out, subjectOfHistory{environment: e.Name, branch: e.Output.Branch,
			deployment: rollout.Name{Namespace: namespace, Name: short},
			record:     path.Join(e.Output.Path, namespace, short)})
	}
	return out, err
}

// teller is a story while it is put together.
type teller struct {
	subjectOfHistory
	flags   historyFlags
	history *report.History
}

func tell(ctx context.Context, a *cmdutil.App, from toucher, t teller) error {
	q := gitops.HistoryQuery{Since: t.flags.since.Time(a.Now()), Most: t.flags.most}
	asked := map[string][]string{t.branch: {t.record}}
	if t.spec != "" {
		asked[""] = append(asked[""], t.spec)
	}
	for _, branch := range cmdutil.SortedKeys(asked) {
		q.Branch, q.Paths = branch, asked[branch]
		found, err := from.Touches(ctx, q)
		if err != nil {
			return err
		}
		if cut := found.Cut; cut != nil {
			a.Say("history ends with commit %s of %s: the repository is shallow (git fetch --unshallow in it brings "+
				"the rest)", cmdutil.ShortHash(cut.Commit), cmdutil.FormatTime(cut.When))
		}
		for _, touch := range found.Touches {
			t.history.Events = append(t.history.Events, commitEvent(t.deployment, touch))
		}
	}
	if err := tellDecisions(ctx, a, t); err != nil {
		return err
	}
	report.SortEvents(t.history.Events)
	if n := t.flags.most; n > 0 && len(t.history.Events) > n {
		t.history.Events = t.history.Events[:n]
	}
	return nil
}

// tellDecisions adds what was recorded. A clone without the refs has the commits alone.
func tellDecisions(ctx context.Context, a *cmdutil.App, t teller) error {
	q := auditlog.Query{NewestFirst: true}
	q.Deployment, q.Since = t.deployment.String(), t.flags.since.Time(a.Now())
	n := 0
	for d, err := range cmdutil.RecordedDecisions(ctx, a, t.flags.repository, t.flags.ref, q) {
		var missing *gitops.NoRefError
		if errors.As(err, &missing) {
			a.Say("without recorded decisions: %v", err)
			return nil
		}
		if err != nil {
			return err
		}
		event, environment, err := decisionEvent(d)
		if err != nil {
			return err
		}
		if environment != t.environment {
			continue
		}
		t.history.Recorded = true
		t.history.Events = append(t.history.Events, event)
		if n++; n == t.flags.most {
			return nil
		}
	}
	return nil
}

// botSubject begins the subjects of the bot's commits.
const botSubject = "rampart("

// commitEvent tells what a commit did to a worker deployment: of a commit of the bot, what its message says of that
// one.
func commitEvent(name rollout.Name, t gitops.Touch) report.Event {
	subject, body, _ := strings.Cut(strings.TrimSpace(t.Message), "\n")
	e := report.Event{At: t.When, Kind: report.CommitEvent, Who: t.Author, What: subject, Commit: t.Commit,
		Paths: t.Paths}
	e.ByBot = strings.HasPrefix(subject, botSubject)
	var own []string
	in := false
	for line := range strings.Lines(body) {
		line = strings.TrimRight(line, " \r\n")
		switch {
		case line == name.String():
			in = true
		case !strings.HasPrefix(line, "  "):
			in = false
		case in:
			own = append(own, strings.TrimSpace(line))
		}
	}
	if _, said, ok := strings.Cut(subject, "): "+name.String()+": "); ok && e.ByBot {
		e.What = said
	}
	// the first line is the subject of the bot's commits, which may be cut there
	if len(own) > 0 && !strings.HasPrefix(own[0], "said by ") {
		e.What, own = own[0], own[1:]
	}
	e.Why = own
	return e
}

// decidedOn is what a story takes from the input of a decision.
type decidedOn struct {
	Environment struct {
		Name string `json:"name"`
	} `json:"environment"`
	Plan struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
		Target  struct {
			BuildID string `json:"buildID"`
		} `json:"target"`
		Actions []struct {
			ID string `json:"id"`
		} `json:"actions"`
	} `json:"plan"`
}

// decisionEvent tells what was decided, and by which rules, and gives the environment.
func decisionEvent(d auditlog.Decision) (e report.Event, environment string, err error) {
	var in decidedOn
	if err := json.Unmarshal(d.Input, &in); err != nil {
		return e, "", fmt.Errorf("decode the input of decision %s: %w", d.ID, err)
	}
	var v rollout.Verdicts
	if err := json.Unmarshal(d.Result, &v); err != nil {
		return e, "", fmt.Errorf("decode the result of decision %s: %w", d.ID, err)
	}
	e = report.Event{At: d.Timestamp, Kind: report.DecisionEvent, Who: d.Labels["id"], Decision: d.ID,
		State: in.Plan.Reason, PolicyDigest: v.PolicyDigest}
	var what []string
	if v.Spec.Effect.Strictness() > rollout.Allow.Strictness() {
		what = append(what, "spec: "+string(v.Spec.Effect))
	}
	e.Why = append(e.Why, foundBy(v.Spec)...)
	for _, a := range in.Plan.Actions {
		verdict, asked := v.Actions[a.ID]
		if !asked {
			what = append(what, a.ID)
			continue
		}
		what = append(what, a.ID+": "+string(verdict.Effect))
		e.Why = append(e.Why, foundBy(verdict)...)
		e.Verdicts = append(e.Verdicts, eventVerdict(a.ID, verdict))
	}
	if e.What = strings.Join(what, "; "); e.What == "" {
		e.What = in.Plan.Reason + ": " + in.Plan.Message
	}
	slices.Sort(e.Why)
	e.Why = slices.Compact(e.Why)
	return e, in.Environment.Name, nil
}

// foundBy are lines about what rules found.
func foundBy(v rollout.Verdict) []string {
	var out []string
	for _, f := range v.Findings {
		line := f.Rule + ": " + f.Text()
		if f.Waived != "" {
			line += " (waived by " + f.Waived + ")"
		}
		out = append(out, line)
	}
	return out
}

func eventVerdict(id string, v rollout.Verdict) report.EventVerdict {
	out := report.EventVerdict{Action: id, Effect: string(v.Effect)}
	for _, f := range v.Findings {
		if !slices.Contains(out.Rules, f.Rule) {
			out.Rules = append(out.Rules, f.Rule)
		}
		if f.Waived != "" {
			if out.Waived == nil {
				out.Waived = map[string]string{}
			}
			out.Waived[f.Rule] = f.Waived
		}
	}
	return out
}
