package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/mirror"
	"github.com/rampart-gitops/rampart/internal/decisionlog"
	"github.com/rampart-gitops/rampart/internal/decisions"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/policy"
)

// recordingFlags say what becomes of decisions.
type recordingFlags struct {
	file   string
	masks  []string
	record bool
	ref    string
}

// addRecording adds the flags of a command that records decisions.
func (f *recordingFlags) addRecording(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.file, "decision-log", "", "file that each new decision is added to, as a line of JSON; - is standard output")
	fs.StringArrayVar(&f.masks, "decision-mask", nil,
		"JSON pointer of what else to mask in decisions, such as /input/deployment/metadata/labels/owner; * is any segment; repeatable")
	fs.BoolVar(&f.record, "record-decisions", false, "keep decisions in the repository, on --decision-ref")
	addDecisionRef(cmd, &f.ref)
}

// addDecisionRef adds the flag that names the ref of decisions.
func addDecisionRef(cmd *cobra.Command, ref *string) {
	cmd.Flags().StringVar(ref, "decision-ref", gitops.DecisionsRef, "ref in --repo that decisions are kept on, in full")
}

// leaveTime is how long decisions may take to come to the ref when the bot ends, and after one cycle.
const (
	leaveTime     = 10 * time.Second
	leaveOnceTime = time.Minute
)

// recordDecisions gives the bot a log where the flags ask for one. close writes what waits, for as long as it is given.
func (a *app) recordDecisions(bot *reconcile.Reconciler, f recordingFlags, repository repositoryFlags) (close func(time.Duration) error, err error) {
	masker, err := decisions.NewMasker(f.masks...)
	if err != nil {
		return nil, fmt.Errorf("--decision-mask: %w", err)
	}
	if f.file == "" && !f.record {
		if len(f.masks) > 0 {
			return nil, errors.New("--decision-mask goes with --decision-log or --record-decisions")
		}
		return func(time.Duration) error { return nil }, nil
	}
	cfg := decisionlog.Config{Masker: masker, Labels: labels(), Log: a.log, Now: a.now, Document: documentOf}
	var closers []func() error
	giveBack := func() error {
		var errs []error
		for _, c := range closers {
			errs = append(errs, c())
		}
		return errors.Join(errs...)
	}
	switch f.file {
	case "":
	case "-":
		cfg.Lines = a.out
	default:
		file, err := decisionlog.OpenFile(f.file)
		if err != nil {
			return nil, fmt.Errorf("--decision-log: %w", err)
		}
		cfg.Lines, closers = file, append(closers, file.Close)
	}
	if f.record {
		ref, dir, err := a.writeDecisions(f.ref, repository)
		if err != nil {
			return nil, errors.Join(err, giveBack())
		}
		cfg.Ref, cfg.Spool, closers = ref, filepath.Join(dir, "spool.jsonl"), append(closers, ref.Close)
	}
	log, err := decisionlog.New(cfg)
	if err != nil {
		return nil, errors.Join(err, giveBack())
	}
	bot.Decisions = log
	return func(most time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), most)
		defer cancel()
		if err := log.Close(ctx); err != nil {
			a.log.Warn("decisions may not all be recorded", "error", err)
		}
		return giveBack()
	}, nil
}

// labels of decisions say who made them, by what.
func labels() map[string]string {
	out := map[string]string{"id": "rampart", "version": readVersion().Version}
	if host, err := os.Hostname(); err == nil {
		out["id"] += "@" + host
	}
	return out
}

// documentOf is what policies were asked about.
func documentOf(d *reconcile.Decision) (json.RawMessage, error) {
	document, err := policy.NewDocument(plan.Judged(d.Snapshot), d.Proposal)
	if err != nil {
		return nil, err
	}
	return document.MarshalJSON()
}

var _ decisionlog.Ref = (*gitops.Decisions)(nil)

// writeDecisions opens the ref of decisions to write to, and gives the folder beside its mirror.
func (a *app) writeDecisions(ref string, f repositoryFlags) (*gitops.Decisions, string, error) {
	if ref == "refs/heads/"+f.branch {
		return nil, "", fmt.Errorf("--decision-ref %s is the branch of the specs: decisions need a ref of their own", ref)
	}
	hooks, err := a.faults()
	if err != nil {
		return nil, "", err
	}
	return a.openDecisions(ref, f, hooks.decisions)
}

func (a *app) openDecisions(ref string, f repositoryFlags, onWrite func(gitops.Moment)) (*gitops.Decisions, string, error) {
	cache, err := cacheDir(f.cacheDir)
	if err != nil {
		return nil, "", err
	}
	auth, err := a.auth(f)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256([]byte(f.url + "\x00" + ref))
	dir := filepath.Join(cache, "decisions", hex.EncodeToString(sum[:8]))
	d, err := gitops.OpenDecisions(gitops.DecisionsConfig{URL: f.url, Ref: ref, Dir: filepath.Join(dir, "mirror"), Auth: auth, Author: f.author,
		Email: f.email, Log: a.log, Now: a.now, OnWrite: onWrite})
	if err != nil {
		return nil, "", fmt.Errorf("open --decision-ref: %w", err)
	}
	return d, dir, nil
}

// decisionQuery says which recorded decisions are wanted.
type decisionQuery struct {
	// Ref that they are kept on; "": gitops.DecisionsRef.
	Ref string
	// Deployment as namespace/name; "": all.
	Deployment string
	// Since; zero: from the beginning.
	Since time.Time
	// Order; "": gitops.NewestFirst.
	Order gitops.DecisionOrder
}

// recordedDecisions reads recorded decisions: from --repo, else from the clone that the folder -C is in. A repository without the ref has none; a
// clone without it is a *gitops.NoRefError, which says how to bring it. An error is the last thing that is given.
func (a *app) recordedDecisions(ctx context.Context, f repositoryFlags, q decisionQuery) iter.Seq2[decisions.Decision, error] {
	if q.Ref == "" {
		q.Ref = gitops.DecisionsRef
	}
	query := gitops.DecisionQuery{Filter: decisions.Filter{Deployment: q.Deployment, Since: q.Since}, Order: q.Order}
	if query.Order == "" {
		query.Order = gitops.NewestFirst
	}
	return func(yield func(decisions.Decision, error) bool) {
		seq, closeAll, err := a.openRecorded(ctx, f, q.Ref, query)
		if err != nil {
			yield(decisions.Decision{}, err)
			return
		}
		stopped := false
		for d, err := range seq {
			if stopped = !yield(d, err); stopped || err != nil {
				break
			}
		}
		if err := closeAll(); err != nil && !stopped {
			yield(decisions.Decision{}, err)
		}
	}
}

// openRecorded opens where decisions are read from.
func (a *app) openRecorded(ctx context.Context, f repositoryFlags, ref string, q gitops.DecisionQuery) (iter.Seq2[decisions.Decision, error], func() error, error) {
	if f.url == "" {
		clone, err := gitops.OpenClone(a.dir)
		if err != nil {
			return nil, nil, err
		}
		return clone.Decisions(ctx, ref, q), clone.Close, nil
	}
	d, _, err := a.openDecisions(ref, f, nil)
	var locked *mirror.LockedError
	if !errors.As(err, &locked) {
		if err != nil {
			return nil, nil, err
		}
		return d.Read(ctx, q), d.Close, nil
	}
	dir, err := os.MkdirTemp("", "rampart-decisions-") // the bot works on the other one
	if err != nil {
		return nil, nil, errors.Join(locked, err)
	}
	f.cacheDir = dir
	if d, _, err = a.openDecisions(ref, f, nil); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return d.Read(ctx, q), func() error { return errors.Join(d.Close(), os.RemoveAll(dir)) }, nil
}

// since is a flag that says how far back to look: a duration, in days too, or a time.
type since struct {
	text string
	back time.Duration
	at   time.Time
}

var _ pflag.Value = (*since)(nil)

func (s *since) String() string { return s.text }

func (s *since) Type() string { return "duration" }

func (s *since) Set(text string) error {
	*s = since{text: text}
	if text == "" {
		return nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			s.at = at
			return nil
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= 36_500 {
			s.back = time.Duration(n) * 24 * time.Hour
			return nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is no time to look back to: 30d, 12h, 2026-03-01 or 2026-03-01T12:00:00Z", text)
	}
	s.back = d
	return nil
}

// time is when it was; zero where it was not said.
func (s *since) time(now time.Time) time.Time {
	if s.back > 0 {
		return now.Add(-s.back)
	}
	return s.at
}
