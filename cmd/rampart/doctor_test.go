package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// doctor compares its clock with that of a Git server, whether that gives credentials a look or not, and says which way it is wrong.
func TestDoctorClock(t *testing.T) {
	server := gittest.ServeHTTP(t, gittest.NewBareRepo(t), gittest.HTTPConfig{User: "bot", Password: "a-token-of-tests"})
	for off, want := range map[time.Duration]string{0: "", 8 * time.Second: "", -8 * time.Second: "", 2 * time.Minute: " ahead of 127.0.0.1:", -time.Hour: " behind 127.0.0.1:"} {
		d := &doctor{app: &app{now: func() time.Time { return time.Now().Add(off) }, variable: func(string) (string, bool) { return "", false }}, repository: repositoryFlags{url: server.URL}}
		d.clock(t.Context())
		require.Len(t, d.checks, 1, off)
		if want == "" {
			require.Equal(t, checkPassed, d.checks[0].Verdict, off)
			continue
		}
		require.Equal(t, checkWarning, d.checks[0].Verdict, off)
		require.Contains(t, d.checks[0].Found, want)
	}
	for _, url := range []string{"git@git.example.com:a/b.git", "file:///srv/git/a.git", "http://127.0.0.1:1/a.git"} {
		d := &doctor{app: &app{now: time.Now, variable: func(string) (string, bool) { return "", false }}, repository: repositoryFlags{url: url}}
		d.clock(t.Context())
		require.Empty(t, d.checks, url)
	}
}
