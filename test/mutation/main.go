// Command mutation breaks the planner in every way that it knows, one at a time, and sees whether a test notices. Each
// condition is negated, each row of a table and each item of a list removed, each check of what must never be left out.
// All mutants are compiled once, into one test binary in which a variable of the environment switches one of them on.
//
// It fails when a mutant survives that is not on the list of those that may, which says for each why no test can tell
// it from the code as it is; and when one of that list is killed or gone. No product code knows of it.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"regexp"
	"runtime"
	"time"
)

//go:embed allowed.txt
var allowedText string

// targets are the packages that are broken, by their folders as seen from the nested module, where make mutate runs
// this.
var targets = []target{{
	dir: "../internal/plan", name: "plan", also: []string{"../internal/oracle"},
	checks: []string{"never", "oracle"}, deep: []string{"never"}, decides: "(outcome, bool)",
	flags: []string{"-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=0s"}, random: "^TestProperties$",
	randomFlags: []string{"-rapid.checks=20"},
}}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("mutation", flag.ContinueOnError)
	file := flags.String("file", "*", "only mutants of files of this pattern")
	name := flags.String("mutant", "", "only mutants whose name this regular expression matches")
	list := flags.Bool("list", false, "name the mutants, and run none")
	cores := flags.Int("cores", runtime.NumCPU(), "how many mutants run at a time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	named, err := regexp.Compile(*name)
	if err != nil {
		return err
	}
	may, err := parseAllowed(allowedText)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	r := report{allowed: may, out: stdout}
	begin := time.Now()
	for _, t := range targets {
		l, err := t.build(ctx, tmp)
		if err != nil {
			return err
		}
		var chosen []mutant
		for _, m := range l.mutants {
			if ok, err := path.Match(*file, m.file); err != nil {
				return err
			} else if !ok || !named.MatchString(m.name()) {
				r.skipped(m)
				continue
			}
			chosen = append(chosen, m)
		}
		if *list {
			for _, m := range chosen {
				fmt.Fprintln(stdout, m.name())
			}
			continue
		}
		if err := l.all(ctx, *cores, chosen, r.lives, r.tell); err != nil {
			return err
		}
	}
	if *list {
		return nil
	}
	return r.end(time.Since(begin))
}
