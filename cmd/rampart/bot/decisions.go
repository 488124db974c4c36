package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/mask"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
)

// recordingFlags say what becomes of decisions.
type recordingFlags struct {
	file   string
	masks  []string
	record bool
	ref    string
	// retention is how long decisions are kept.
	retention cmdutil.Days
}

// addRecording adds the flags of a command that records decisions.
func (f *recordingFlags) addRecording(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.file, "decision-log", "",
		"file that each new decision is added to, as a line of JSON; - is standard output")
	fs.StringArrayVar(&f.masks, "decision-mask", nil,
		"JSON pointer of what else to mask in decisions, such as /input/deployment/metadata/labels/owner; * is any "+
			"segment; repeatable")
	fs.BoolVar(&f.record, "record-decisions", false, "keep decisions in the repository, below --decision-ref")
	f.retention = cmdutil.Days(auditlog.DefaultRetention)
	fs.Var(&f.retention, "decision-retention",
		"how long decisions are kept in the repository, such as 400d; 0: forever")
	cmdutil.AddDecisionRef(cmd, &f.ref)
}

// leaveTime is how long decisions may take to come to the ref when the bot ends, and after one cycle.
const (
	leaveTime     = 10 * time.Second
	leaveOnceTime = time.Minute
)

// recordDecisions gives the bot a log where the flags ask for one. close writes what waits, for as long as it is given.
func recordDecisions(a *cmdutil.App, bot *reconcile.Reconciler, f recordingFlags,
	repository cmdutil.RepositoryFlags) (close func(time.Duration) error, err error) {
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
	cfg := auditlog.Config{Masker: masker, Labels: labels(), Log: a.Log, Now: a.Now, Document: documentOf}
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
		cfg.Lines = a.Out
	default:
		file, err := auditlog.OpenFile(f.file)
		if err != nil {
			return nil, fmt.Errorf("--decision-log: %w", err)
		}
		cfg.Lines, closers = file, append(closers, file.Close)
	}
	if f.record {
		archive, dir, err := writeDecisions(a, f.ref, repository)
		if err != nil {
			return nil, errors.Join(err, giveBack())
		}
		cfg.Store = auditlog.NewRef(archive, auditlog.RefConfig{Name: f.ref, Retention: time.Duration(f.retention),
			Log: a.Log, Now: a.Now})
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
			a.Log.Warn("decisions may not all be recorded", "error", err)
		}
		return giveBack()
	}, nil
}

// labels of decisions say who made them, by what.
func labels() map[string]string {
	out := map[string]string{"id": "rampart", "version": cmdutil.ReadVersion().Version}
	if host, err := os.Hostname(); err == nil {
		out["id"] += "@" + host
	}
	return out
}

// documentOf is what policies were asked about.
func documentOf(d *rollout.Decision) (json.RawMessage, error) {
	document, err := policy.NewDocument(plan.Look(d.Snapshot).JudgedBy(), d.Proposal)
	if err != nil {
		return nil, err
	}
	return document.MarshalJSON()
}

// writeDecisions opens the refs of decisions to write to, and gives the folder beside their mirror.
func writeDecisions(a *cmdutil.App, ref string, f cmdutil.RepositoryFlags) (*gitops.Archive, string, error) {
	if ref == "refs/heads/"+f.Branch {
		return nil, "", fmt.Errorf("--decision-ref %s is the branch of the specs: decisions need refs of their own",
			ref)
	}
	archive, dir, err := cmdutil.OpenDecisions(a, ref, f)
	if err != nil {
		return nil, "", err
	}
	if err := archive.Empty(context.Background()); err != nil { // what it holds on disk grows with each push
		return nil, "", errors.Join(err, archive.Close())
	}
	return archive, dir, nil
}
