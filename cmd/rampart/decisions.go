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
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/mask"
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
	// retention is how long decisions are kept.
	retention days
}

// addRecording adds the flags of a command that records decisions.
func (f *recordingFlags) addRecording(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.file, "decision-log", "",
		"file that each new decision is added to, as a line of JSON; - is standard output")
	fs.StringArrayVar(&f.masks, "decision-mask", nil,
		"JSON pointer of what else to mask in decisions, such as /input/deployment/metadata/labels/owner; * is any segment; repeatable")
	fs.BoolVar(&f.record, "record-decisions", false, "keep decisions in the repository, below --decision-ref")
	f.retention = days(auditlog.DefaultRetention)
	fs.Var(&f.retention, "decision-retention", "how long decisions are kept in the repository, such as 400d; 0: forever")
	addDecisionRef(cmd, &f.ref)
}

// addDecisionRef adds the flag that names the refs of decisions.
func addDecisionRef(cmd *cobra.Command, ref *string) {
	cmd.Flags().StringVar(ref, "decision-ref", auditlog.DefaultRef,
		"full name of the refs in --repo that decisions are kept on: one for each month below it")
}

// leaveTime is how long decisions may take to come to the ref when the bot ends, and after one cycle.
const (
	leaveTime     = 10 * time.Second
	leaveOnceTime = time.Minute
)

// recordDecisions gives the bot a log where the flags ask for one. close writes what waits, for as long as it is given.
func (a *app) recordDecisions(bot *reconcile.Reconciler, f recordingFlags, repository repositoryFlags) (close func(time.Duration) error, err error) {
	masker, err := mask.New(f.masks...)
	if err != nil {
		return nil, fmt.Errorf("--decision-mask: %w", err)
	}
	if f.file == "" && !f.record {
		if len(f.masks) > 0 {
			return nil, errors.New("--decision-mask goes with --decision-log or --record-decisions")
		}
		return func(time.Duration) error { return nil }, nil
	}
	cfg := auditlog.Config{Masker: masker, Labels: labels(), Log: a.log, Now: a.now, Document: documentOf}
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
		file, err := auditlog.OpenFile(f.file)
		if err != nil {
			return nil, fmt.Errorf("--decision-log: %w", err)
		}
		cfg.Lines, closers = file, append(closers, file.Close)
	}
	if f.record {
		archive, dir, err := a.writeDecisions(f.ref, repository)
		if err != nil {
			return nil, errors.Join(err, giveBack())
		}
		cfg.Store = auditlog.NewRef(archive, auditlog.RefConfig{Name: f.ref, Retention: time.Duration(f.retention),
			Log: a.log, Now: a.now})
		cfg.Spool, closers = filepath.Join(dir, "spool.jsonl"), append(closers, archive.Close)
	}
	log, err := auditlog.New(cfg)
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

// writeDecisions opens the refs of decisions to write to, and gives the folder beside their mirror.
func (a *app) writeDecisions(ref string, f repositoryFlags) (*gitops.Archive, string, error) {
	if ref == "refs/heads/"+f.branch {
		return nil, "", fmt.Errorf("--decision-ref %s is the branch of the specs: decisions need refs of their own", ref)
	}
	hooks, err := a.faults()
	if err != nil {
		return nil, "", err
	}
	archive, dir, err := a.openDecisions(ref, f, hooks.decisions)
	if err != nil {
		return nil, "", err
	}
	if err := archive.Empty(context.Background()); err != nil { // what it holds on disk grows with each push
		return nil, "", errors.Join(err, archive.Close())
	}
	return archive, dir, nil
}

func (a *app) openDecisions(ref string, f repositoryFlags, onWrite func(gitops.Moment),
) (archive *gitops.Archive, dir string, err error) {
	cache, err := cacheDir(f.cacheDir)
	if err != nil {
		return nil, "", err
	}
	auth, err := a.auth(f)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256([]byte(f.url + "\x00" + ref))
	dir = filepath.Join(cache, "decisions", hex.EncodeToString(sum[:8]))
	archive, err = gitops.OpenArchive(gitops.ArchiveConfig{URL: f.url, Ref: ref, Dir: filepath.Join(dir, "mirror"),
		Auth: auth, Author: f.author, Email: f.email, Log: a.log, Now: a.now, OnWrite: onWrite})
	if err != nil {
		return nil, "", fmt.Errorf("open --decision-ref: %w", err)
	}
	return archive, dir, nil
}

// recordedDecisions reads recorded decisions: from --repo, else from the clone that the folder -C is in. A repository
// without the refs has none; a clone without them is a *gitops.NoRefError, which says how to fetch them. An error is
// the last thing that is given.
func (a *app) recordedDecisions(ctx context.Context, f repositoryFlags, ref string, q auditlog.Query,
) iter.Seq2[auditlog.Decision, error] {
	if ref == "" {
		ref = auditlog.DefaultRef
	}
	return func(yield func(auditlog.Decision, error) bool) {
		archive, closeAll, err := a.openRecorded(f, ref)
		if err != nil {
			yield(auditlog.Decision{}, err)
			return
		}
		stopped := false
		for d, err := range auditlog.Read(ctx, archive, ref, q) {
			if stopped = !yield(d, err); stopped || err != nil {
				break
			}
		}
		if err := closeAll(); err != nil && !stopped {
			yield(auditlog.Decision{}, err)
		}
	}
}

// openRecorded opens where decisions are read from.
func (a *app) openRecorded(f repositoryFlags, ref string) (auditlog.Archive, func() error, error) {
	if f.url == "" {
		clone, err := gitops.OpenClone(a.dir)
		if err != nil {
			return nil, nil, err
		}
		return clone.Archive(ref), clone.Close, nil
	}
	archive, _, err := a.openDecisions(ref, f, nil)
	var locked *git.LockedError
	if !errors.As(err, &locked) {
		if err != nil {
			return nil, nil, err
		}
		return archive, archive.Close, nil
	}
	dir, err := os.MkdirTemp("", "rampart-decisions-") // the bot works on the other one
	if err != nil {
		return nil, nil, errors.Join(locked, err)
	}
	f.cacheDir = dir
	if archive, _, err = a.openDecisions(ref, f, nil); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return archive, func() error { return errors.Join(archive.Close(), os.RemoveAll(dir)) }, nil
}

// days is a flag for a duration of at least some days.
type days time.Duration

var _ pflag.Value = (*days)(nil)

func (d *days) String() string {
	if *d == 0 {
		return "0"
	}
	return strconv.Itoa(int(time.Duration(*d)/(24*time.Hour))) + "d"
}

func (d *days) Type() string { return "days" }

func (d *days) Set(text string) error {
	n, err := strconv.Atoi(strings.TrimSuffix(text, "d"))
	if err != nil || n < 0 || n > maxDays || n > 0 && !strings.HasSuffix(text, "d") {
		return fmt.Errorf("parse %q: want a number of days such as 400d, or 0", text)
	}
	*d = days(n) * days(24*time.Hour)
	return nil
}

// maxDays bounds flags in days.
const maxDays = 36_500

// since is a flag that says how far back to look: a duration, in days too, or a time.
type since struct {
	text string
	back time.Duration
	at   time.Time
}

var _ pflag.Value = (*since)(nil)

// lookBack is a flag whose default is a number of days.
func lookBack(days int) since {
	return since{text: strconv.Itoa(days) + "d", back: time.Duration(days) * 24 * time.Hour}
}

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
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= maxDays {
			s.back = time.Duration(n) * 24 * time.Hour
			return nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q: want a duration such as 30d or 12h, or a time such as 2026-03-01 or 2026-03-01T12:00:00Z", text)
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
