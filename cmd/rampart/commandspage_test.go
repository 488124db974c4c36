package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
)

const commandsPage = "../../docs/commands.md"

const commandsHead = `# Commands and their flags

Made of the commands themselves by ` + "`go test ./cmd/rampart -run TestCommandsPage -update`" + `. ` + "`--help`" + ` of each command says more about it, with examples.

A flag wins over its variable, a variable over the file that ` + "`--config`" + ` names. In the file flags stand under their names, without dashes;
one that may be given several times is a list there, and one text with commas in its variable, where its type is ` + "`strings`" + `. A variable that is
empty counts as not set. Times are such as ` + "`90s`, `15m`, `24h`" + `.

Exit codes are 0 fine or nothing to do; 1 error; 2 changes pending, not ready, or policy refuses; 130 and 143 stopped by a signal:
[exit codes](operations.md#exit-codes).
`

// TestCommandsPage: docs/commands.md says what the commands say. With -update it is written anew.
func TestCommandsPage(t *testing.T) {
	root := newRoot(&cmdutil.App{})
	var page strings.Builder
	page.WriteString(commandsHead)
	page.WriteString("\n## Flags of every command\n\n")
	flagTable(&page, root.PersistentFlags())
	for _, c := range documentedCommands(root) {
		fmt.Fprintf(&page, "\n## %s\n\n%s.\n\n```\n%s\n```\n", c.CommandPath(), strings.TrimSuffix(c.Short, "."), c.UseLine())
		if c.LocalNonPersistentFlags().HasAvailableFlags() {
			page.WriteString("\n")
			flagTable(&page, c.LocalNonPersistentFlags())
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(commandsPage, []byte(page.String()), 0o644))
	}
	there, err := os.ReadFile(commandsPage)
	require.NoError(t, err)
	got := strings.Split(string(there), "\n")
	for i, want := range strings.Split(page.String(), "\n") {
		require.Greater(t, len(got), i, "the page ends before %q: run the test with -update", want)
		require.Equal(t, want, got[i], "%s:%d: out of date: run the test with -update", commandsPage, i+1)
	}
	require.Len(t, got, strings.Count(page.String(), "\n")+1, "the page says more than the commands: run the test with -update")
}

// documentedCommands are the commands that do something and are not hidden, sorted by their paths.
func documentedCommands(c *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, sub := range c.Commands() {
		if sub.Hidden {
			continue
		}
		if sub.Runnable() {
			out = append(out, sub)
		}
		out = append(out, documentedCommands(sub)...)
	}
	return out
}

// cell is for text in a table of Markdown.
var cell = strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`)

// flagTable writes a row for each flag of a set.
func flagTable(page *strings.Builder, flags *pflag.FlagSet) {
	page.WriteString("| flag | default | variable | |\n| --- | --- | --- | --- |\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		kind, usage := pflag.UnquoteUsage(f)
		if kind != "" {
			name += " " + kind
		}
		variable := ""
		if cmdutil.Configurable(f.Name) {
			variable = "`" + cmdutil.VariableOf(f.Name) + "`"
		}
		fmt.Fprintf(page, "| `%s` | %s | %s | %s |\n", name, shownDefault(f), variable, cell.Replace(usage))
	})
}

// shownDefault is a flag's default as it would be given, "" where it is nothing.
func shownDefault(f *pflag.Flag) string {
	value := f.DefValue
	if list, ok := f.Value.(pflag.SliceValue); ok {
		value = strings.Join(list.GetSlice(), ",")
	}
	switch value {
	case "", "false", "[]", "0s":
		return ""
	}
	return "`" + value + "`"
}
