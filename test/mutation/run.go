package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	// checks are the types whose methods check something: each call of one is left out once, and each answer that one
	// gives by itself is changed. Conditions are taken to pieces in methods of deep, and in functions that decide
	// something: decides is what these result in.
	checks, deep []string
	decides      string
	// flags go to every run; random are the tests that play at random, which only what survives the others is shown,
	// and more flags for these.
	flags       []string
	random      string
	randomFlags []string
}

// quick is how long a test may take to be among those that every mutant is shown first.
const quick = 100 * time.Millisecond

// allowance is how many seconds of a processor a test binary may take, several times what it takes, however busy the
// machine is. One that goes on for ever has noticed; one that waits for ever is ended by Go.
const allowance = "60"

// overtime marks the output of a test binary that used its allowance up.
const overtime = "\nkilled for its processor time\n"

// stage is a part of the tests, from the cheap to the dear.
type stage struct {
	run  string
	args []string
}

// lab is a package in which every mutant can be switched on.
type lab struct {
	target
	mutants []mutant
	binary  string
	stages  []stage

	mu sync.Mutex
	// noticed are the tests that noticed mutants of a file, the last one first: likely they notice the next, too.
	noticed map[string][]string
}

// likely is how many of these a mutant is shown before all the others.
const likely = 3

// build finds the mutants of a package and makes one test binary for all of them.
func (t target) build(ctx context.Context, tmp string) (*lab, error) {
	dir, err := filepath.Abs(t.dir)
	if err != nil {
		return nil, err
	}
	l := &lab{target: t, binary: filepath.Join(tmp, t.name+".test"), noticed: map[string][]string{}}
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
	return l, l.plan(ctx)
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

var passed = regexp.MustCompile(`(?m)^--- PASS: (\w+) \(([0-9.]+)s\)$`)

// plan runs the tests on the code as it is, which they have to pass, and sorts them by how long they take.
func (l *lab) plan(ctx context.Context) error {
	args := []string{"-test.v"}
	if l.random != "" {
		args = append(args, "-test.skip="+l.random)
	}
	out, failed := l.exec(ctx, 0, args)
	if failed {
		return fmt.Errorf("the tests of %s fail without any mutant:\n%s", l.dir, out)
	}
	var cheap, dear []string
	for _, m := range passed.FindAllStringSubmatch(out, -1) {
		if s, err := strconv.ParseFloat(m[2], 64); err == nil && s < quick.Seconds() {
			cheap = append(cheap, m[1])
		} else {
			dear = append(dear, m[1])
		}
	}
	for _, names := range [][]string{cheap, dear} {
		if len(names) > 0 {
			l.stages = append(l.stages, stage{run: anyOf(names)})
		}
	}
	if len(l.stages) == 0 {
		return errors.New("no tests in " + l.dir)
	}
	if l.random != "" {
		l.stages = append(l.stages, stage{l.random, l.randomFlags})
	}
	return nil
}

func (l *lab) exec(ctx context.Context, n int, args []string) (out string, failed bool) {
	args = slices.Concat([]string{"-c", `ulimit -t "$0" && exec "$@"`, allowance, l.binary}, args, l.flags, []string{"-test.failfast", "-test.timeout=0"})
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir = l.dir
	cmd.Env = append(os.Environ(), which+"="+strconv.Itoa(n), "GOMAXPROCS=1")
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil && !exit.Exited() { // a crash of Go's exits
		b = append(b, overtime...)
	}
	return string(b), err != nil
}

// show shows a mutant to the tests: to those that play at random only if it is not meant to live. It gives the test
// that noticed, "" for none.
func (l *lab) show(ctx context.Context, m mutant, lives bool) string {
	stages := l.stages
	if first := l.guess(m.file); len(first) > 0 {
		stages = append([]stage{{run: anyOf(first)}}, stages...)
	}
	for _, s := range stages {
		if lives && s.run == l.random {
			continue
		}
		if out, failed := l.exec(ctx, m.n, append([]string{"-test.run=" + s.run}, s.args...)); failed {
			by := killer(out)
			l.learn(m.file, by)
			return by
		}
	}
	return ""
}

func (l *lab) guess(file string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.noticed[file])
}

func (l *lab) learn(file, by string) {
	test, _, _ := strings.Cut(by, "/")
	if !strings.HasPrefix(test, "Test") || l.random != "" && regexp.MustCompile(l.random).MatchString(test) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	others := slices.DeleteFunc(l.noticed[file], func(o string) bool { return o == test })
	l.noticed[file] = append([]string{test}, others[:min(len(others), likely-1)]...)
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
func (l *lab) all(ctx context.Context, cores int, mutants []mutant, lives func(mutant) bool, tell func(mutant, string)) error {
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
