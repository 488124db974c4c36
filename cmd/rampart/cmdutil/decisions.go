package cmdutil

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/internal/auditlog"
)

// AddDecisionRef adds the flag that names the refs of decisions.
func AddDecisionRef(cmd *cobra.Command, ref *string) {
	cmd.Flags().StringVar(ref, "decision-ref", auditlog.DefaultRef,
		"full name of the refs in --repo that decisions are kept on: one for each month below it")
}

// OpenDecisions opens the refs of decisions in --repo, and returns the folder of this machine in which their mirror is.
func OpenDecisions(a *App, ref string, f RepositoryFlags) (archive *gitops.Archive, dir string, err error) {
	cache, err := CacheDir(f.CacheDir)
	if err != nil {
		return nil, "", err
	}
	auth, err := credentials(a, f)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256([]byte(f.URL + "\x00" + ref))
	dir = filepath.Join(cache, "decisions", hex.EncodeToString(sum[:8]))
	archive, err = gitops.OpenArchive(gitops.ArchiveConfig{URL: f.URL, Ref: ref, Dir: filepath.Join(dir, "mirror"),
		Auth: auth, Author: f.Author, Email: f.Email, Log: a.Log, Now: a.Now, OnWrite: a.Hooks.Decisions})
	if err != nil {
		return nil, "", fmt.Errorf("open --decision-ref: %w", err)
	}
	return archive, dir, nil
}

// RecordedDecisions reads recorded decisions: from --repo, else from the clone that the folder -C is in. A repository
// without the refs has none; a clone without them is a *gitops.NoRefError, which says how to fetch them. An error is
// the last thing that is given.
func RecordedDecisions(ctx context.Context, a *App, f RepositoryFlags, ref string, q auditlog.Query,
) iter.Seq2[auditlog.Decision, error] {
	if ref == "" {
		ref = auditlog.DefaultRef
	}
	return func(yield func(auditlog.Decision, error) bool) {
		archive, closeAll, err := openRecorded(a, f, ref)
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
func openRecorded(a *App, f RepositoryFlags, ref string) (auditlog.Archive, func() error, error) {
	if f.URL == "" {
		clone, err := gitops.OpenClone(a.Dir)
		if err != nil {
			return nil, nil, err
		}
		return clone.Archive(ref), clone.Close, nil
	}
	return shortLived(f, func(f RepositoryFlags) (*gitops.Archive, error) {
		archive, _, err := OpenDecisions(a, ref, f)
		return archive, err
	})
}

var _ pflag.Value = (*Days)(nil)

var _ pflag.Value = (*Since)(nil)
