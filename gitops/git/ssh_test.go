package git

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// A call that asks for something while the connection ends would never be answered: it returns the error that the
// connection has ended.
func TestNobodyWaitsForAConnectionThatEnded(t *testing.T) {
	ended, never := make(chan struct{}), make(chan struct{})
	defer close(never)
	got, err := unlessEnded(ended, func() (string, error) { return "a session", nil })
	require.NoError(t, err)
	require.Equal(t, "a session", got)
	asked := make(chan struct{})
	go func() { <-asked; close(ended) }()
	_, err = unlessEnded(ended, func() (string, error) { close(asked); <-never; return "", nil })
	require.ErrorIs(t, err, net.ErrClosed)
}
