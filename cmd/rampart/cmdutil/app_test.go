package cmdutil

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdtest"
	"github.com/rampart-gitops/rampart/internal/report"
)

// testApp is what apptest.New makes, which these tests cannot import.
func testApp(t *testing.T) (*App, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	return &App{In: new(bytes.Buffer), Out: &out, Err: new(bytes.Buffer), Now: func() time.Time { return cmdtest.Now }, Dir: t.TempDir(),
		Log: slog.New(slog.DiscardHandler), LookupEnv: func(string) (string, bool) { return "", false }}, &out
}

func TestColorsAreForTerminals(t *testing.T) {
	terminal, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as a terminal is
	require.NoError(t, err)
	t.Cleanup(func() { _ = terminal.Close() })
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	with := func(vars map[string]string) func(string) (string, bool) {
		return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	}
	for name, c := range map[string]struct {
		app  App
		want report.Style
	}{
		"terminal":   {App{Out: terminal, LookupEnv: with(nil)}, report.Colored},
		"NO_COLOR":   {App{Out: terminal, LookupEnv: with(map[string]string{"NO_COLOR": "1"})}, report.Plain},
		"empty":      {App{Out: terminal, LookupEnv: with(map[string]string{"NO_COLOR": ""})}, report.Colored},
		"--no-color": {App{Out: terminal, LookupEnv: with(nil), noColor: true}, report.Plain},
		"dumb":       {App{Out: terminal, LookupEnv: with(map[string]string{"TERM": "dumb"})}, report.Plain},
		"file":       {App{Out: file, LookupEnv: with(nil)}, report.Plain},
		"buffer":     {App{Out: new(bytes.Buffer), LookupEnv: with(nil)}, report.Plain},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, c.app.Style()) })
	}
}
