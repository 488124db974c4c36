//go:build unix

package auditlog_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/auditlog"
)

// Closing does not wait for a write to a pipe that is not read.
func TestFileThatIsAPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	reader, err := os.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	f, err := auditlog.OpenFile(name)
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = f.Write(make([]byte, 1<<20)) // it fails when the reader is gone
	}()
	one := make([]byte, 1)
	_, err = reader.Read(one)
	require.NoError(t, err)
	closed := make(chan error, 1)
	go func() { closed <- f.Close() }()
	select {
	case err := <-closed:
		require.ErrorContains(t, err, "being written to")
	case <-time.After(10 * time.Second):
		t.Fatal("it waits")
	}
	require.NoError(t, reader.Close())
	<-ended
	require.NoError(t, f.Close())
}
