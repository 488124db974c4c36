// Package memorylimit says when the Go runtime collects garbage.
package memorylimit

import (
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// ownPart is the part of a container's memory that the bot keeps below. The rest is for the processes that evaluate
// policies and build folders of specs.
const ownPart = 0.6

// gcPercent is how much garbage there may be, in percent of what is in use, before it is collected. Go's own 100 takes
// a fifth of the processor time in which a thousand worker deployments are decided and rendered.
const gcPercent = 200

// Set has the runtime collect garbage in time to stay below its part of a container's memory limit, unless
// GOMEMLIMIT says something else. What a first cycle leaves behind would come near to twice what it needs, and the
// process be killed. Below that limit, or without one, garbage is collected seldom, unless GOGC says how often.
func Set(log *slog.Logger, limit memlimit.Provider) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	bytes, err := memlimit.Set(memlimit.WithProvider(limit), memlimit.WithRatio(ownPart))
	if err != nil {
		log.Debug("memory is not bounded", "error", err)
		return
	}
	log.Debug("memory is collected in time", "limit", bytes)
}
