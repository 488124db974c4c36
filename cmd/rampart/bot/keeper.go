package bot

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/internal/diskcache"
	"github.com/rampart-gitops/rampart/internal/reconcile"
)

// keepEvery is how often what the bot knows is kept while it runs: what a crash loses of it is work.
const keepEvery = time.Minute

// keeper keeps on disk what only saves the next run work. What goes wrong with it is logged, and stops nothing.
type keeper struct {
	*cmdutil.App
	file diskcache.File
	last time.Time
}

// newKeeper lets a bot begin with what an earlier run of this program knew of the repository. A bot that runs once
// takes only what files say: it looks at each worker deployment itself, because no later cycle does.
func newKeeper(a *cmdutil.App, f botFlags, repo *gitops.Repository, bot *reconcile.Reconciler) (*keeper, error) {
	dir, err := cmdutil.CacheDir(f.repository.CacheDir)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(f.repository.URL + "\x00" + f.repository.Branch + "\x00" + a.Env))
	parts := []diskcache.Part{repo, bot}
	if f.once {
		parts = parts[:1]
	}
	k := &keeper{App: a, last: a.Now(), file: diskcache.File{Path: filepath.Join(dir, "remembered",
		hex.EncodeToString(sum[:8])),
		Key: thisProgram() + " " + f.settings, Parts: parts}}
	if err := k.file.Load(); err != nil {
		a.Log.Warn("what an earlier run knew is not used", "error", err)
	}
	return k, nil
}

// thisProgram names the program as it was built: what another decided need not be what this one would.
func thisProgram() string {
	name := cmdutil.ReadVersion().String()
	if path, err := os.Executable(); err == nil {
		if info, err := os.Stat(path); err == nil {
			name += fmt.Sprintf(" %d %d", info.Size(), info.ModTime().UnixNano())
		}
	}
	return name
}

// settingsOf names how a command was called: what was decided with other settings need not be what is decided with
// these.
func settingsOf(cmd *cobra.Command) string {
	sum := sha256.New()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		_, _ = fmt.Fprintf(sum, "%s=%q\n", f.Name, f.Value.String())
	})
	return hex.EncodeToString(sum.Sum(nil))
}

// keep saves what is known now.
func (k *keeper) keep() {
	k.last = k.Now()
	if err := k.file.Save(); err != nil {
		k.Log.Warn("what is known could not be kept for the next run", "error", err)
	}
}

// afterCycle saves what is known once in a while, when a cycle found something out.
func (k *keeper) afterCycle(r reconcile.Report) {
	if r.LookedAt > 0 && k.Now().Sub(k.last) >= keepEvery {
		k.keep()
	}
}
