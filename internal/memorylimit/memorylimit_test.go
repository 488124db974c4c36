package memorylimit

import (
	"errors"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/stretchr/testify/require"
)

func TestMemoryStaysBelowAPartOfTheContainers(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	for name, c := range map[string]struct {
		limit  memlimit.Provider
		person string
		want   int64
	}{
		"a container's limit": {memlimit.Limit(1000 << 20), "", 600 << 20},
		"none":                {func() (uint64, error) { return 0, memlimit.ErrNoLimit }, "", math.MaxInt64},
		"nobody knows":        {func() (uint64, error) { return 0, errors.New("no cgroups here") }, "", 5 << 30},
		"somebody chose":      {memlimit.Limit(1000 << 20), "5GiB", 5 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			debug.SetMemoryLimit(5 << 30)
			t.Setenv("GOMEMLIMIT", c.person)
			t.Setenv("AUTOMEMLIMIT", "")
			require.NoError(t, os.Unsetenv("AUTOMEMLIMIT"))
			if c.person == "" {
				require.NoError(t, os.Unsetenv("GOMEMLIMIT"))
			}
			Set(slog.New(slog.DiscardHandler), c.limit)
			require.Equal(t, c.want, debug.SetMemoryLimit(-1))
		})
	}
}

// Garbage is collected seldom, unless somebody says how often.
func TestGarbageIsCollectedSeldom(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	t.Setenv("GOMEMLIMIT", "")
	for person, want := range map[string]int{"": 200, "100": 100} {
		t.Setenv("GOGC", person)
		debug.SetGCPercent(100) // what the runtime starts with
		Set(slog.New(slog.DiscardHandler), memlimit.Limit(1000<<20))
		require.Equal(t, want, debug.SetGCPercent(100), "GOGC=%s", person)
	}
}
