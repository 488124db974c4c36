package cmdutil

import (
	"log/slog"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// boundMemory has the runtime collect garbage in time to stay below a container's memory limit, unless GOMEMLIMIT says
// something else: what a first cycle leaves behind would come near to twice what it needs, and the process be killed.
// Without a limit nothing changes.
func boundMemory(log *slog.Logger, limit memlimit.Provider) {
	bytes, err := memlimit.Set(memlimit.WithProvider(limit))
	if err != nil {
		log.Debug("memory is not bounded", "error", err)
		return
	}
	log.Debug("memory is collected in time", "limit", bytes)
}
