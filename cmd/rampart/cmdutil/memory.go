package cmdutil

import (
	"log/slog"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// ownPart is the part of a container's memory that the bot keeps below. The rest is for the processes that evaluate
// policies and build folders of specs.
const ownPart = 0.6

// boundMemory has the runtime collect garbage in time to stay below its part of a container's memory limit, unless
// GOMEMLIMIT says something else. What a first cycle leaves behind would come near to twice what it needs, and the
// process be killed. Without a limit nothing changes.
func boundMemory(log *slog.Logger, limit memlimit.Provider) {
	bytes, err := memlimit.Set(memlimit.WithProvider(limit), memlimit.WithRatio(ownPart))
	if err != nil {
		log.Debug("memory is not bounded", "error", err)
		return
	}
	log.Debug("memory is collected in time", "limit", bytes)
}
