package testneed

import (
	"net"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorder notes how a test ends.
type recorder struct {
	testing.TB
	ended string
}

func (r *recorder) Helper()           {}
func (r *recorder) Fatal(args ...any) { r.end("failed", args) }
func (r *recorder) Skip(args ...any)  { r.end("skipped", args) }

func (r *recorder) end(how string, args []any) {
	r.ended = how + ": " + args[0].(string)
	runtime.Goexit()
}

func TestMissingSkipsOrFails(t *testing.T) {
	for value, want := range map[string]string{"": "skipped: no sshd", "1": "failed: no sshd"} {
		t.Setenv(all, value)
		r := &recorder{}
		done := make(chan struct{})
		go func() { defer close(done); Missing(r, "no sshd") }()
		<-done
		require.Equal(t, want, r.ended)
	}
}

// A program that is told a port listens at it later: no connection that leaves meanwhile may have it.
func TestFreePort(t *testing.T) {
	seen := map[int]bool{}
	for range 100 {
		port, err := FreePort()
		require.NoError(t, err)
		require.False(t, seen[port])
		require.Less(t, port, 32_768)
		seen[port] = true
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
}
