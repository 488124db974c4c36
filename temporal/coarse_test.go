package temporal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// What becomes public of a failed connection is its class; what Temporal says of what it was asked for is said in full.
func TestFailuresAreCoarse(t *testing.T) {
	const secret = "10.0.0.7:5432"
	details := errors.New("dial tcp " + secret + ": connection refused")
	for want, err := range map[string]error{
		"Temporal cannot be reached":                                        &ConnectError{details},
		"the bot's credentials for Temporal cannot be used":                 &CredentialsError{&fs.PathError{Op: "open", Path: secret, Err: fs.ErrNotExist}},
		"Temporal does not accept the bot's credentials":                    serviceError(status.Error(codes.Unauthenticated, secret)),
		"Temporal does not answer":                                          serviceError(status.Error(codes.Unavailable, secret)),
		"Temporal refuses the call, or does not know it (Unknown)":          serviceError(status.Error(codes.Unknown, "received status 404 from "+secret)),
		"Temporal refuses the call, or does not know it (Unimplemented)":    serviceError(status.Error(codes.Unimplemented, secret)),
		"Temporal refuses the call, or does not know it (PermissionDenied)": serviceError(status.Error(codes.PermissionDenied, secret)),
	} {
		p := problem("read x", fmt.Errorf("describe: %w", err))
		require.Equal(t, "read x: "+want+seeLog, p.Message)
	}
	require.Contains(t, problem("read x", serviceError(status.Error(codes.NotFound, "namespace shop is not there"))).Message, "namespace shop is not there")
	require.Contains(t, problem("read x", errors.New("the answer is empty")).Message, "the answer is empty")

	var log bytes.Buffer
	p := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	t.Cleanup(p.Close)
	address := refusing(t)
	obs := p.Observe(t.Context(), connectionTo(address), rollout.Ask{TemporalNamespace: "ns"})
	require.NotContains(t, obs.Problem.Message, "refused")
	require.NotContains(t, obs.Problem.Message, address)
	require.Contains(t, log.String(), "refused", "the detail is in the log")
}
