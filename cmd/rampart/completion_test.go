package main

import (
	"regexp"
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/apptest"
)

// Each flag with a value says how it is completed, or takes a file. One that is new has to be thought of.
func TestEveryFlagIsCompleted(t *testing.T) {
	files := []string{"allowed-signers", "config", "decision-log", "decisions", "forge-token-file", "gate-key-file", "git-ca-file", "git-known-hosts", "git-ssh-key-file",
		"git-ssh-passphrase-file", "git-token-file", "github-app-key-file", "input", "junit", "kubeconfig", "owners", "policy", "policy-bundle-ca-file", "policy-bundle-key", "policy-bundle-token-file",
		"prometheus-ca-file", "prometheus-token-file", "signing-key", "signing-passphrase-file", "snapshot", "temporal-api-key-file", "temporal-connections", "temporal-tls-ca", "temporal-tls-cert",
		"temporal-tls-key", "webhook-secret-file", "webhook-tls-cert", "webhook-tls-key"}
	seen := map[string]bool{}
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, completed := cmd.GetFlagCompletionFunc(f.Name)
			if f.NoOptDefVal != "" || cmd.Hidden { // a switch
				return
			}
			require.NotEqual(t, slices.Contains(files, f.Name), completed, "%s --%s", cmd.CommandPath(), f.Name)
			seen[f.Name] = true
		})
		for _, c := range cmd.Commands() {
			look(c)
		}
	}
	a, _ := apptest.New(t)
	look(newRoot(a))
	for _, f := range slices.Concat(files, folderFlags, freeFlags) {
		require.True(t, seen[f], "there is no --%s any more", f)
	}
}

// What is secret comes from a file or a variable: others on the machine see what a process was started with.
func TestNoFlagTakesASecret(t *testing.T) {
	secret := regexp.MustCompile(`token|secret|password|passphrase|key`)
	seen := 0
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.NoOptDefVal == "" && secret.MatchString(f.Name) {
				require.Regexp(t, `\bfiles?\b|\bPEM\b`, f.Name+": "+f.Usage, "%s --%s", cmd.CommandPath(), f.Name)
				seen++
			}
		})
		for _, c := range cmd.Commands() {
			look(c)
		}
	}
	a, _ := apptest.New(t)
	look(newRoot(a))
	require.Greater(t, seen, 10)
}
