package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/reconcile"
)

var noConnection v1alpha1.Connection

// What native git took for its part where the targets that are times come from. These parts are to ask for a branch, to
// fetch and push one change, and to clone at depth 1, read the specs and push.
const (
	nativeAsk    = 13900 * time.Microsecond
	nativeChange = 195 * time.Millisecond
	nativeDepth1 = 1785 * time.Millisecond
)

// TestScale measures whole cycles of the bot beside native git, in turn, and prints a table. Native git does the same
// work on a repository of its own. SCALE says on how many worker deployments: `make bench` 1 000 unless it is set,
// the everyday test a few, to see that all of it works. After each cycle the server's branch is looked at: it has to
// hold what it should, and nothing else.
//
// What worker deployments wait for in Temporal namespaces that are slow is measured once, without a fleet.
//
// Figures depend on the machine and on what else it does; the ratios, of runs in turn, much less. A target that is a
// time is that of the machine that the design was measured on: it is scaled by what native git takes here for its part
// of the line, or for one change where it has no part. Nothing fails for being slow.
func TestScale(t *testing.T) {
	sizes, everyday := os.Getenv("SCALE"), false
	if sizes == "" {
		sizes, everyday = "60", true
	}
	only := os.Getenv("SCALE_ONLY")
	if only == "" || strings.Contains(only, namespacesPart) {
		t.Run(namespacesPart, func(t *testing.T) {
			n := namespaces{pace: 1, failing: 25, others: 200, ramping: 150, each: 5, cycles: 25}
			if everyday {
				n = namespaces{pace: 20, failing: 3, others: 12, ramping: 12, each: 1, cycles: 3}
			}
			n.all(t)
		})
	}
	if only == namespacesPart { // it needs no fleet
		return
	}
	for size := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(size))
		require.NoError(t, err, "SCALE is a list of numbers, such as 1000,10000")
		t.Run(size, func(t *testing.T) {
			f := fleet{Deployments: n, Unrelated: 5 * n, History: 200, Seed: 1}
			if everyday {
				f.History = 10
			}
			newScale(t, f, everyday).all()
		})
	}
}

// scale is one fleet, on a server for the bot and on one for git.
type scale struct {
	*testing.T
	fleet    fleet
	everyday bool
	bot, git hosted
	temporal string // file with what Temporal knows
	cache    string // of the bot
	builds   int    // how many changes were made
	table    table
	// changed is the line of one change; nil: it was not measured.
	changed *line
}

// hosted is a repository and where it is served.
type hosted struct {
	*gittest.Repo
	url string
}

func newScale(t *testing.T, f fleet, everyday bool) *scale {
	start := time.Now()
	settled := f.settle(t)
	repo := f.commit(t, settled)
	s := &scale{T: t, fleet: f, everyday: everyday, temporal: filepath.Join(t.TempDir(), "temporal.json"), cache: t.TempDir(), builds: versions}
	for _, h := range []*hosted{&s.bot, &s.git} {
		h.Repo = copyOf(t, repo)
		h.url = served(t, h.Repo)
	}
	data, err := json.Marshal(settled.temporal)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(s.temporal, data, 0o600))
	t.Logf("%d worker deployments, %d unrelated files, %d commits: made in %s", f.Deployments, f.Unrelated, f.History+1, time.Since(start).Round(time.Second))
	return s
}

// copyOf shares the objects, which never change.
func copyOf(t *testing.T, r *gittest.Repo) *gittest.Repo {
	dir := filepath.Join(t.TempDir(), "repo.git")
	out, err := exec.Command("cp", "-a", "-l", r.Dir, dir).CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "logs"))) // those are written to
	return gittest.OpenRepo(t, dir)
}

func (s *scale) rounds(n int) int {
	if s.everyday {
		return 1
	}
	return n
}

// parts of a run; SCALE_ONLY names those that are run. A start with nothing comes before all that push: a server packs
// its repositories anew from time to time, and these are not.
func (s *scale) all() {
	only := os.Getenv("SCALE_ONLY")
	for _, part := range []struct {
		name string
		run  func()
	}{{"nothing", s.nothing}, {"warm", s.warm}, {"reaction", s.reaction}, {"restart", s.restart}, {"cold", s.cold}, {"first", s.first}} {
		if only == "" || strings.Contains(only, part.name) {
			part.run()
		}
	}
	s.bot.Fsck()
	s.git.Fsck()
	s.table.print(number(s.fleet.Deployments)+" worker deployments", s.fleet.Deployments)
}

// start starts a bot on a cache.
func (s *scale) start(cache string) *botClient {
	s.Helper()
	return startBot(s, botConfig{URL: s.bot.url, Cache: cache, Temporal: s.temporal})
}

// settle ends a bot when nothing is left to do. The next one finds Temporal as it left it.
func (s *scale) settle(b *botClient) {
	s.Helper()
	b.quiet()
	b.ask(botRequest{Do: "save"})
	b.stop()
}

// change is what a person pushed: other images in some specs.
type change struct {
	specs  []int
	build  int
	commit string
}

// push changes the specs in a repository.
func (s *scale) push(h hosted, specs []int, build int) change {
	s.Helper()
	write := map[string]string{}
	for _, i := range specs {
		write[s.fleet.specPath(i)] = s.fleet.spec(i, build, allAtOnce)
	}
	return change{specs, build, h.Commit(gittest.Commit{Write: write, When: time.Now()})}
}

// some are k worker deployments, others each time.
func (s *scale) some(k int) []int {
	s.builds++
	var out []int
	for j := range k {
		out = append(out, (j*(s.fleet.Deployments/k)+s.builds*7919)%s.fleet.Deployments)
	}
	return out
}

// both has the same change made in both repositories, and the bot and git act on it, the bot first. What the bot wrote
// is what git writes.
func (s *scale) both(k int, bot func() botAnswer, git func(c change, write map[string]string) (string, cost)) (ours, theirs cost) {
	s.Helper()
	specs := s.some(k)
	c := s.push(s.bot, specs, s.builds)
	a := bot()
	require.Len(s, a.Commits, 1)
	write := s.written(s.bot, c, a.Commits[0])
	if git == nil {
		return cost{a.Wall, a.CPU}, cost{}
	}
	c = s.push(s.git, specs, s.builds)
	tip, theirs := git(c, write)
	require.Equal(s, write, s.written(s.git, c, tip))
	return cost{a.Wall, a.CPU}, theirs
}

var imageLine = regexp.MustCompile(`(?m)^ +image: (.+)$`)

// written gives the files of a commit, and checks that they are those that it had to be. It is the branch's tip, on top
// of the person's; each worker deployment has a version with the new image, is routed and says so; nothing else was
// touched.
func (s *scale) written(h hosted, c change, commit string) map[string]string {
	s.Helper()
	require.Equal(s, commit, h.Tip("main"))
	require.Equal(s, c.commit, h.Git("rev-parse", commit+"^"))
	type seen struct{ status, routing, image bool }
	found := map[string]*seen{}
	for _, i := range c.specs {
		found[s.fleet.recordPath(i)+"/"] = &seen{}
	}
	write := map[string]string{}
	var paths, blobs []string
	for line := range strings.SplitSeq(h.Git("diff-tree", "-r", c.commit, commit), "\n") {
		meta, p, _ := strings.Cut(line, "\t")
		f := strings.Fields(meta)
		require.Contains(s, "AM", f[4], p)
		paths, blobs = append(paths, p), append(blobs, f[3])
	}
	for i, data := range h.blobs(blobs) {
		p := paths[i]
		write[p] = data
		dir := strings.Join(strings.SplitAfterN(p, "/", 4)[:3], "")
		at := found[dir]
		require.NotNil(s, at, "%s is of nobody who changed", p)
		switch name := strings.TrimPrefix(p, dir); {
		case name == "routing.yaml":
			at.routing = true
		case name == "status.yaml":
			at.status = true
		case strings.HasSuffix(name, "/deployment.yaml"):
			image := imageLine.FindStringSubmatch(data)
			require.NotNil(s, image, p)
			require.True(s, strings.HasSuffix(image[1], ":v1."+strconv.Itoa(c.build)+".0"), "%s: %s", p, image[1])
			at.image = true
		}
	}
	for dir, at := range found {
		require.Equal(s, seen{true, true, true}, *at, dir)
	}
	return write
}

// blobs reads many objects at once.
func (h hosted) blobs(hashes []string) []string {
	out := h.GitInput([]byte(strings.Join(hashes, "\n")+"\n"), "cat-file", "--batch=%(objectsize)") + "\n"
	var list []string
	for range hashes {
		head, rest, _ := strings.Cut(out, "\n")
		size, _ := strconv.Atoi(head)
		list = append(list, rest[:size])
		out = strings.TrimPrefix(rest[size:], "\n")
	}
	return list
}

// warm is a bot that runs as a loop.
func (s *scale) warm() {
	b := s.start(s.cache)
	first := b.cycle()
	if len(first.Commits) > 0 {
		s.Fatalf("the fleet is not settled: %s", s.bot.Git("show", "--stat", "-p", first.Commits[0])[:3000])
	}
	require.Equal(s, s.fleet.Deployments, first.Decided)
	b.quiet()
	n := &native{tb: s, url: s.git.url}
	n.clone()
	follow := n.follow(s.git.Tip("main"))

	idle := s.table.row("no change", wallRatio(0.3), cpuScaled(2*time.Millisecond, nativeAsk))
	for range s.rounds(201) {
		a := b.cycle()
		require.Empty(s, a.Commits)
		require.Zero(s, a.Described)
		idle.add(cost{a.Wall, a.CPU}, n.measured(func() {
			require.Contains(s, n.git(nil, "ls-remote", "origin", "refs/heads/main"), s.git.Tip("main"))
		}))
	}
	for _, k := range []int{1, max(s.fleet.Deployments/10, 2)} {
		targets, rounds := []target{wallRatio(0.5), cpuScaled(15*time.Millisecond, nativeChange)}, 41
		if k > 1 {
			targets, rounds = targets[:1], 9
		}
		row := s.table.row(number(k)+" changed", targets...)
		decide := func() {}
		if k == 1 {
			s.changed = row
			decide = s.decider()
		}
		for range s.rounds(rounds) {
			row.add(s.both(k, func() botAnswer {
				a := b.cycle()
				require.Equal(s, k, a.Decided, "what changed, and nothing else")
				return a
			}, follow))
			decide() // at the end: what it leaves in the processor's caches is not for the bot to clear up
			if b.quiet(); k > 1 {
				b.rest()
			}
		}
		if k == 1 {
			b.rest() // what is left of these would be among the next ones
		}
	}
	s.settle(b)
}

// decider gives what measures, in a process of its own, what deciding and rendering takes. The rounds of one change
// call it: what the machine does beside them is the same for both.
func (s *scale) decider() (measure func()) {
	s.Helper()
	x := benchOfNewVersion(s)
	known := filepath.Join(s.TempDir(), "temporal.json")
	data, err := json.Marshal(world{time.Now(), x.temporal.known})
	require.NoError(s, err)
	require.NoError(s, os.WriteFile(known, data, 0o600))
	b := startBot(s, botConfig{URL: x.url, Cache: s.TempDir(), Temporal: known})
	row := s.table.row("decide one and render it", wallScaled(500*time.Microsecond, nativeChange))
	row.by, row.from = s.changed, 1000
	return func() {
		a := b.ask(botRequest{Do: "decide"})
		row.add(cost{a.Wall, a.CPU}, cost{})
	}
}

// reaction is a bot that is told by a webhook: from a person's push to the bot's.
func (s *scale) reaction() {
	b := s.start(s.cache)
	b.quiet()
	hook := b.ask(botRequest{Do: "listen"}).Hook
	n := &native{tb: s, url: s.git.url}
	n.clone()
	follow := n.follow(s.git.Tip("main"))
	row := s.table.row("push to commit by webhook, 1 changed", wallMost(time.Second)) // with the server's own time
	row.from = 1000
	for range s.rounds(5) {
		row.add(s.both(1, func() botAnswer {
			commit, pushed := s.bot.Tip("main"), time.Now()
			answer := b.begin(botRequest{Do: "react"})
			deliver(s, hook, commit)
			a := answer()
			a.Wall = a.Done.Sub(pushed)
			return a
		}, follow))
		b.quiet()
	}
	s.settle(b)
}

// restart is a bot that starts on a mirror that is there, and reads everything.
func (s *scale) restart() {
	n := &native{tb: s, url: s.git.url}
	n.clone()
	tip := s.git.Tip("main")
	row := s.table.row("restart on a mirror, 1 changed", wallRatio(1))
	for i := range s.rounds(9) {
		b := s.start(s.cache)
		row.add(s.both(1, b.cycle, func(_ change, write map[string]string) (pushed string, c cost) {
			n.prepare(write)
			c = n.measured(func() {
				at := n.fetchChanged(tip)
				n.specs(at)
				pushed = n.push(at, write)
			})
			tip = pushed
			return pushed, c
		}))
		if i == 0 {
			b.quiet()
			for range 20 {
				b.cycle()
			}
			if os.Getenv("BENCH_PROFILE") != "" {
				b.ask(botRequest{Do: "heap"})
			}
			a := b.cycle()
			live := b.ask(botRequest{Do: "collect"})
			s.table.note("memory steady", fmt.Sprintf("%s, %s of it live; %s at most since the start",
				megabytes(a.Resident), megabytes(live.Heap), megabytes(a.Peak)), memoryMost(a.Resident, 150<<20))
		}
		s.settle(b)
	}
}

// cold is a bot without a mirror that has the cache of an earlier one.
func (s *scale) cold() { s.withoutMirror(true) }

// nothing is a bot that has nothing at all.
func (s *scale) nothing() { s.withoutMirror(false) }

func (s *scale) withoutMirror(cached bool) {
	clone := func(c change, write map[string]string) (pushed string, took cost) {
		n := &native{tb: s, url: s.git.url}
		n.prepare(write)
		return pushed, n.measured(func() {
			n.clone()
			n.specs(c.commit)
			pushed = n.push(c.commit, write)
		})
	}
	for _, filters := range []bool{true, false} {
		s.bot.Git("config", "uploadpack.allowFilter", strconv.FormatBool(filters))
		what, server := "cold, nothing remembered", "no filter"
		targets := []target{wallScaled(10*time.Second, nativeDepth1)}
		if cached {
			what, targets = "cold, remembered", []target{wallRatio(2)} // without a filter the whole snapshot comes, as it does for git
		}
		if filters {
			server = "server filters"
		}
		if filters && cached {
			targets = []target{wallRatio(0.5), wallScaled(3*time.Second/2, nativeDepth1)}
		}
		what += ", " + server
		row := s.table.row(what+", 1 changed", targets...)
		peak := int64(0)
		defer func() { s.table.note("memory, "+what, megabytes(peak)+" peak") }()
		for range s.rounds(5) {
			cache := s.TempDir()
			if cached {
				s.copyCache(cache)
			}
			b := s.start(cache)
			row.add(s.both(1, func() botAnswer {
				a := b.ask(botRequest{Do: "commit"}) // with nothing remembered, other worker deployments are looked at after that
				peak = max(peak, a.Peak)
				return a
			}, clone))
			s.settle(b)
		}
	}
}

// copyCache copies the cache without the mirror.
func (s *scale) copyCache(to string) {
	s.Helper()
	out, err := exec.Command("sh", "-c", `cd "$0" && for f in *; do test "$f" = mirror || cp -a "$f" "$1"/; done`, s.cache, to).CombinedOutput()
	require.NoError(s, err, string(out))
}

// first is the first render of all: a repository that has specs and nothing else.
func (s *scale) first() {
	files := map[string]string{}
	for i := range s.fleet.Deployments {
		files[s.fleet.specPath(i)] = s.fleet.spec(i, 0, progressive)
		files[connectionPath(s.fleet.team(i))] = connectionOf(s.fleet.team(i))
	}
	repo := gittest.NewBareRepo(s)
	repo.Commit(gittest.Commit{Write: files})
	url := served(s, repo)
	target := wallMost(4 * time.Second)
	if s.changed != nil {
		target = wallScaled(4*time.Second, nativeChange)
	}
	plan := s.table.row("plan and render all from memory, two cores", target)
	plan.by = s.changed
	for range s.rounds(5) {
		b := startBot(s, botConfig{URL: url, Cache: s.TempDir()})
		a := b.ask(botRequest{Do: "plan"})
		require.Equal(s, s.fleet.Deployments, a.Decided)
		plan.add(cost{a.Wall, a.CPU}, cost{})
		b.stop()
	}
	b := startBot(s, botConfig{URL: url, Cache: s.TempDir()})
	var whole cost
	var a botAnswer
	for range (s.fleet.Deployments + reconcile.DefaultMaxDue - 1) / reconcile.DefaultMaxDue { // then come the promotions
		a = b.ask(botRequest{Do: "commit"})
		require.Len(s, a.Commits, 1)
		whole.wall, whole.cpu = whole.wall+a.Wall, whole.cpu+a.CPU
	}
	require.Equal(s, s.fleet.Deployments, strings.Count("\n"+repo.Git("ls-tree", "-r", "--name-only", "main"), "/deployment.yaml"))
	repo.Fsck()
	s.table.row("first render of all, pushed").add(whole, cost{})
	s.table.note("memory at the first render of all", megabytes(a.Peak)+" peak, "+megabytes(a.Heap)+" heap afterwards",
		memoryMost(a.Peak, 700<<20))
	b.stop()
}
