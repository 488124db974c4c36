// Package apptest makes the App that the tests of groups of commands run. The tests of cmdutil itself cannot import it.
package apptest

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdtest"
	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
)

// New makes an App in an empty folder, without environment variables and with a clock that stands still.
func New(t *testing.T) (app *cmdutil.App, output *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	return &cmdutil.App{In: new(bytes.Buffer), Out: &out, Err: new(bytes.Buffer), Dir: t.TempDir(),
		Now: func() time.Time { return cmdtest.Now }, Log: slog.New(slog.DiscardHandler),
		LookupEnv: func(string) (string, bool) { return "", false }}, &out
}

// FolderSource reads the folder of the app.
func FolderSource(t *testing.T, a *cmdutil.App) cmdutil.SpecSource {
	t.Helper()
	source, _, err := a.OpenSource(cmdutil.RepositoryFlags{})
	require.NoError(t, err)
	return source
}
