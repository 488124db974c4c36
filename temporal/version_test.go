package temporal

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What an older server lacks is logged when it is first met, and when its release changes: not with each read.
func TestOlderServerIsLoggedOnce(t *testing.T) {
	var log strings.Builder
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	server := &oldServer{version: "1.29.1"}
	s := &session{pool: New(Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Clock: func() time.Time { return now }}),
		conn: &connection{service: server, address: Address{HostPort: "temporal:7233"}}, limits: newLimiter("shop", Budget{}), namespace: "shop"}
	read := func(version string) int {
		server.version = version
		got, err := s.serverVersion(t.Context())
		require.NoError(t, err)
		require.Equal(t, version, got)
		now = now.Add(versionKeptFor)
		return strings.Count(log.String(), "level=WARN")
	}
	require.Equal(t, 1, read("1.29.1"))
	require.Contains(t, log.String(), "Temporal is an older release: it cannot count workflows whose workflow task keeps failing (from 1.30), "+
		"it does not tell when a version became current (from 1.30), it cannot move a workflow for one task (from 1.32); upgrade it to 1.32 or later")
	require.Contains(t, log.String(), "server=temporal:7233 version=1.29.1")
	require.Equal(t, 1, read("1.29.1"), "said already")
	require.Equal(t, 2, read("1.31.0"))
	require.Equal(t, 2, read("1.32.0"), "nothing is missing")
}
