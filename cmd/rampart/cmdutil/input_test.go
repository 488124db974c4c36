package cmdutil

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// TestStoppableReader: what is there is read, and a read that waits ends with the context.
func TestStoppableReader(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	text := strings.Repeat("some text ", 30_000)
	require.NoError(t, iotest.TestReader(StoppableReader(ctx, strings.NewReader(text)), []byte(text)))

	in, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(StoppableReader(ctx, in))
		ended <- err
	}()
	_, err := io.WriteString(out, "some")
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	_, err = StoppableReader(ctx, strings.NewReader(text)).Read(make([]byte, 1))
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, out.Close()) // the read that still waits ends
}
