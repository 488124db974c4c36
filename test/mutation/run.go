package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// target is a package whose code is changed, to see which of its tests notices.
type target struct {
	// dir is where it is, name what it is called.
	dir, name string
	// also are the folders of packages that only its tests use, and that are changed, too.
	also []string
	// checks are the types whose methods check something. Each call of one is left out once, and each answer that one
	// gives by itself is changed. Conditions are taken to pieces in methods of deep, and in functions that decide
	// something: decides is what these result in.
	checks, deep []string
	decides      string
	// flags go to every run. random are the tests that play at random, which only what survives the others is shown,
	// and more flags for these.
	flags       []string
	random      string
	randomFlags []string
}

// allowance is how many seconds of a processor a test binary may take, several times what it takes, however busy the
// machine is. One that goes on for ever has noticed; one that waits for ever is ended by Go.
const allowance = "60"

// overtime marks the output of a test binary that used its allowance up.
const overtime = "\nkilled for its processor time\n"

// test is a test of a package, on the code as it is.
type test struct {
	name string
	// took is for how long it computes by itself.
	took time.Duration
	// reaches are the mutants that it comes by. No other can change what it does.
	reaches map[int]bool
}

// lab is a package in which every mutant can be switched on.
type lab struct {
	target
	mutants []mutant
	binary  string
	tests   []test // the quickest first

	mu sync.Mutex
	// noticed is how many mutants of a file a test noticed.
	noticed map[noticing]int
}

type noticing struct{ file, test string }

// build finds the mutants of a package and makes one test binary for all of them.
func (t target) build(ctx context.Context, tmp string) (*lab, error) {
	dir, err := filepath.Abs(t.dir)
	if err != nil {
		return nil, err
	}
	l := &lab{target: t, binary: filepath.Join(tmp, t.name+".test"), noticed: map[noticing]int{}}
	l.dir = dir
	overlay := map[string]string{}
	for _, folder := range append([]string{dir}, t.also...) {
		if err := l.rewrite(folder, tmp, overlay); err != nil {
			return nil, err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return nil, err
	}
	at := filepath.Join(tmp, t.name+".json")
	if err := os.WriteFile(at, list, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-c", "-overlay", at, "-o", l.binary, ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile %s with its mutants: %w\n%s", t.dir, err, out)
	}
	return l, l.survey(ctx, tmp)
}

// rewrite puts the mutants into the files of a package, beside the file that switches them on, and notes where the new
// files are.
func (l *lab) rewrite(dir, tmp string, overlay map[string]string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	pkg := ""
	replace := func(name, text string) error {
		by := filepath.Join(tmp, filepath.Base(dir)+"_"+name)
		overlay[filepath.Join(dir, name)] = by
		return os.WriteFile(by, []byte(text), 0o600)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		found, rewritten, of, err := find(l.target, name, string(src), len(l.mutants)+1)
		if err != nil {
			return err
		}
		pkg = of
		l.mutants = append(l.mutants, found...)
		if err := replace(name, rewritten); err != nil {
			return err
		}
	}
	return replace("mutant.go", fmt.Sprintf(switches, pkg))
}

// survey runs each test by itself on the code as it is, which it has to pass.
func (l *lab) survey(ctx context.Context, tmp string) error {
	cmd := exec.CommandContext(ctx, l.binary, "-test.list=^Test")
	cmd.Dir = l.dir
	list, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list the tests of %s: %w", l.dir, err)
	}
	for _, name := range strings.Fields(string(list)) {
		if l.random == "" || !regexp.MustCompile(l.random).MatchString(name) {
			l.tests = append(l.tests, test{name: name, reaches: map[int]bool{}})
		}
	}
	if len(l.tests) == 0 {
		return errors.New("no tests in " + l.dir)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.NumCPU())
	for i := range l.tests {
		g.Go(func() error { return l.tests[i].survey(ctx, l, filepath.Join(tmp, l.tests[i].name+".reached")) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	slices.SortFunc(l.tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	return nil
}

func (t *test) survey(ctx context.Context, l *lab, file string) error {
	cmd := l.command(ctx, []string{"-test.run=" + anyOf([]string{t.name})}, reach+"="+file)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s of %s fails without any mutant: %w\n%s", t.name, l.dir, err, out)
	}
	t.took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	reached, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, line := range strings.Fields(string(reached)) {
		n, err := strconv.Atoi(line)
		if err != nil {
			return fmt.Errorf("read what mutants %s comes by: %w", t.name, err)
		}
		t.reaches[n] = true
	}
	return nil
}

// brief is how long the tests that a mutant is shown to together may take.
const brief = 100 * time.Millisecond

// stages are the tests that come by a mutant, as what to run one after the other. First come those that noticed others
// of its file, then the quickest.
func (l *lab) stages(m mutant) [][]string {
	var stages [][]string
	var sum time.Duration
	for _, t := range l.likely(m.file) {
		if !t.reaches[m.n] {
			continue
		}
		if sum += t.took; len(stages) == 0 || sum > brief {
			stages, sum = append(stages, nil), t.took
		}
		stages[len(stages)-1] = append(stages[len(stages)-1], t.name)
	}
	return stages
}

// likely are all tests, those first that noticed mutants of a file: they notice others, too.
func (l *lab) likely(file string) []test {
	l.mu.Lock()
	defer l.mu.Unlock()
	tests := slices.Clone(l.tests)
	slices.SortStableFunc(tests, func(a, b test) int {
		return cmp.Compare(l.noticed[noticing{file, b.name}], l.noticed[noticing{file, a.name}])
	})
	return tests
}

func (l *lab) notice(file, by string) {
	name, _, _ := strings.Cut(by, "/")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noticed[noticing{file, name}]++
}

// command runs a test binary with a processor of its own.
func (l *lab) command(ctx context.Context, args []string, env string) *exec.Cmd {
	args = slices.Concat([]string{"-c", `ulimit -t "$0" && exec "$@"`, allowance, l.binary}, args, l.flags,
		[]string{"-test.failfast", "-test.timeout=0"})
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir = l.dir
	cmd.Env = append(os.Environ(), env, "GOMAXPROCS=1")
	return cmd
}

// exec gives what a test binary says as a mutant, and whether it noticed.
func (l *lab) exec(ctx context.Context, m mutant, args ...string) (out string, noticed bool) {
	b, err := l.command(ctx, args, which+"="+strconv.Itoa(m.n)).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil && !exit.Exited() { // a crash of Go's exits
		b = append(b, overtime...)
	}
	return string(b), err != nil
}

// show shows a mutant to the tests that come by it. Tests that play at random see it last, if it is not meant to live.
// It gives the test that noticed, "" for none.
func (l *lab) show(ctx context.Context, m mutant, lives bool) string {
	for _, names := range l.stages(m) {
		if out, noticed := l.exec(ctx, m, "-test.run="+anyOf(names)); noticed {
			by := killer(out)
			l.notice(m.file, by)
			return by
		}
	}
	if l.random == "" || lives {
		return ""
	}
	out, noticed := l.exec(ctx, m, append([]string{"-test.run=" + l.random}, l.randomFlags...)...)
	if !noticed {
		return ""
	}
	return killer(out)
}

func anyOf(tests []string) string { return "^(" + strings.Join(tests, "|") + ")$" }

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+) \(`)

// killer is the test that failed first, as deep as its name goes.
func killer(out string) string {
	if strings.HasSuffix(out, overtime) {
		return "a time-out"
	}
	found := ""
	for _, m := range failure.FindAllStringSubmatch(out, -1) {
		if strings.HasPrefix(m[1], found) {
			found = m[1]
		}
	}
	if found == "" {
		return "a crash"
	}
	return found
}

// all shows mutants to the tests, on as many cores as there are, and hands on what became of them in their order.
func (l *lab) all(ctx context.Context, cores int, mutants []mutant, lives func(mutant) bool,
	tell func(mutant, string)) error {
	by := make([]chan string, len(mutants))
	for i := range by {
		by[i] = make(chan string, 1)
	}
	var g errgroup.Group
	g.SetLimit(cores + 1)
	g.Go(func() error {
		for i, m := range mutants {
			tell(m, <-by[i])
		}
		return nil
	})
	for i, m := range mutants {
		g.Go(func() error {
			by[i] <- l.show(ctx, m, lives(m))
			return ctx.Err()
		})
	}
	return g.Wait()
}
