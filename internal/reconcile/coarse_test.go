package reconcile

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

// unreachable is an error with words for the log.
type unreachable struct{ error }

func (unreachable) Coarse() string { return "Temporal cannot be reached" }

// The words of a failed dial, which say what is in the bot's network, are in the log and not in Git.
func TestDialErrorsStayInTheLog(t *testing.T) {
	s := newScene(t)
	var log bytes.Buffer
	r := s.reconciler()
	r.Log = slog.New(slog.NewTextHandler(&log, nil))
	s.once(r)
	s.ready()
	s.raiseErr = fmt.Errorf("set current: %w", unreachable{errors.New("dial tcp 10.0.0.7:5432: connection refused")})
	s.once(r)
	s.raiseErr = nil
	s.once(r)
	require.Contains(t, log.String(), "connection refused")
	said := false
	for _, c := range s.commits {
		require.NotContains(t, c.Message, "10.0.0.7")
		for _, f := range c.Changes {
			require.NotContains(t, f.Data, "10.0.0.7")
			said = said || bytes.Contains([]byte(f.Data), []byte("Temporal cannot be reached"))
		}
	}
	require.True(t, said, "the status says what kind of failure it was")
}
