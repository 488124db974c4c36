//go:build size

package decisions_test

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/internal/decisions"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/policy"
)

// A year of 1 000 worker deployments that decide 6 000 times each has to stay below so many bytes on the ref.
const (
	yearly     = 6000
	fleet      = 1000
	mostOfYear = 100e6
)

// BenchmarkSize measures what decisions take on the ref: those of so many worker deployments for so many days, each of which decides at
// least 6 000 times a year. Each is played by the real planner and judged by the real engine, with names, hashes, times and counts of its
// own; none is a copy of another. They come to a real ref as the bot brings them there, and the repository is packed as git gc packs it.
//
// RUNS says how many for how long. An epoch is a month and knows nothing of others. So 1 000 for some days say what 1 000 take for a year:
// they pay at once what is said once in a month, and the days after that are alike; and a few for a year say that months are alike, with
// flushes as large as those of 1 000. Their decisions take more room each, as they have fewer others to be like. DIR keeps what was played
// for the next time, and the repository.
func BenchmarkSize(b *testing.B) {
	for run := range strings.FieldsSeq(cmp.Or(os.Getenv("RUNS"), "1000x2 6x365")) {
		var deployments, days int
		_, err := fmt.Sscanf(run, "%dx%d", &deployments, &days)
		require.NoError(b, err, "RUNS: %q is not DEPLOYMENTSxDAYS", run)
		b.Run(run, func(b *testing.B) {
			for b.Loop() {
				measure(b, deployments, days)
			}
		})
	}
}

func measure(b *testing.B, deployments, days int) {
	dir := os.Getenv("DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := &measured{b: b, repo: sizeRepo(b, filepath.Join(dir, fmt.Sprintf("%dx%d.git", deployments, days))), started: from, days: days,
		flushAfter: 15 * time.Minute * fleet / time.Duration(deployments), about: map[string]int{}}
	m.keep(b)
	engine := policy.Compile(policy.Config{})
	for end := from.AddDate(0, 0, days); from.Before(end); {
		to := earlier(from.AddDate(0, 1, 1-from.Day()), end)
		c := playedMonth{company: company{deployments: deployments, start: from.Add(-lead), counted: from}, to: to, dir: filepath.Join(dir, from.Format("2006-01"))}
		c.days = int(to.Sub(c.start) / (24 * time.Hour))
		if days >= wholeMonth { // in less, a worker deployment may have no rollout at all
			c.due, c.had = (yearly+spare)*int(to.Sub(m.started)/(24*time.Hour))/365, m.about
		}
		m.month(c.files(b, engine), from, to)
		if os.Getenv("DIR") == "" {
			require.NoError(b, os.RemoveAll(c.dir))
		}
		from = to
	}
	m.report()
}

// spare is how many decisions each is to have beyond what is asked for: December may have too few cycles to choose from.
const spare = 200

// wholeMonth is how many days a month has at least.
const wholeMonth = 28

// lead is played before what counts: a month does not begin with new worker deployments.
const lead = 48 * time.Hour

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func sizeRepo(b *testing.B, dir string) *gittest.Repo {
	require.NoError(b, os.RemoveAll(dir))
	r := gittest.NewBareRepo(b)
	require.NoError(b, os.MkdirAll(filepath.Dir(dir), 0o755))
	require.NoError(b, os.Rename(r.Dir, dir))
	r = gittest.OpenRepo(b, dir)
	r.Git("config", "gc.auto", "0")
	r.Git("config", "receive.autogc", "false")
	return r
}

// measured is one run of the measurement.
type measured struct {
	b       *testing.B
	repo    *gittest.Repo
	ref     *gitops.Decisions
	started time.Time
	days    int
	// flushAfter is how long decisions wait.
	flushAfter time.Duration
	pending    []decisions.Decision
	due, now   time.Time

	// about counts decisions by their worker deployment.
	about              map[string]int
	decisions, commits int
	json, segments     int64
	flushing           time.Duration
	// dailySegments and dailyBefore are bytes of segments and decisions up to the last day that is over, lastDay its bytes a decision.
	dailySegments int64
	dailyBefore   int
	lastDay       float64
	// months are bytes in segments a decision.
	months []float64
}

func (m *measured) keep(b *testing.B) {
	var err error
	m.ref, err = gitops.OpenDecisions(gitops.DecisionsConfig{URL: m.repo.URL(), Ref: gitops.DecisionsRef, Dir: b.TempDir(), Author: "rampart",
		Email: "rampart@example.com", Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return m.now }})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, m.ref.Close()) })
}

// month brings one month to the ref.
func (m *measured) month(files []string, from, to time.Time) {
	day := from.AddDate(0, 0, 1)
	before, beforeJSON, beforeSegments := m.decisions, m.json, m.segments
	inOrder(m.b, files, from, to, func(d decisions.Decision) {
		for ; !d.Timestamp.Before(day); day = day.AddDate(0, 0, 1) {
			m.say(day)
		}
		m.take(d)
	})
	m.flush()
	m.say(to)
	n := int64(m.decisions - before)
	m.months = append(m.months, float64(m.segments-beforeSegments)/float64(n))
	m.b.Logf("%s: %d decisions of %d bytes of JSON each, %.1f in segments; at the end %.1f", from.Format("January"), n, (m.json-beforeJSON)/n,
		m.months[len(m.months)-1], m.lastDay)
}

// say tells a person who waits how far it is, and what a decision of the last day took.
func (m *measured) say(day time.Time) {
	if n := m.decisions - m.dailyBefore; n > 0 {
		m.lastDay = float64(m.segments-m.dailySegments) / float64(n)
		m.dailyBefore, m.dailySegments = m.decisions, m.segments
	}
	if testing.Verbose() {
		fmt.Println("before", day.Format(time.DateOnly), m.decisions, "decisions", m.commits, "commits",
			fmt.Sprintf("%.1f B/decision in segments", m.lastDay), m.flushing.Round(time.Second))
	}
}

// take takes a decision, and flushes as the bot does: a quarter of an hour after the first that waits, or when 500 wait.
func (m *measured) take(d decisions.Decision) {
	if len(m.pending) > 0 && !d.Timestamp.Before(m.due) || len(m.pending) == 500 {
		m.flush()
	}
	if len(m.pending) == 0 {
		m.due = d.Timestamp.Add(m.flushAfter)
	}
	m.pending = append(m.pending, d)
}

func (m *measured) flush() {
	if len(m.pending) == 0 {
		return
	}
	for i := range m.pending {
		name, err := m.pending[i].Deployment()
		require.NoError(m.b, err)
		m.about[name.String()]++
		m.json += int64(len(m.pending[i].Input) + len(m.pending[i].Result))
	}
	m.now = earlier(m.due, m.pending[len(m.pending)-1].Timestamp.Add(m.flushAfter))
	start := time.Now()
	commits, err := m.ref.Append(m.b.Context(), m.pending)
	require.NoError(m.b, err)
	m.flushing += time.Since(start)
	for _, c := range commits {
		size, err := strconv.ParseInt(strings.TrimSpace(m.repo.Git("cat-file", "-s", c+":segment")), 10, 64)
		require.NoError(m.b, err)
		m.segments += size
	}
	m.commits, m.decisions, m.pending = m.commits+len(commits), m.decisions+len(m.pending), m.pending[:0]
}

func (m *measured) report() {
	b := m.b
	least, most := m.decisions, 0
	for _, n := range m.about {
		least, most = min(least, n), max(most, n)
	}
	loose, _ := m.sizes()
	m.repo.Git("gc", "-q", "--prune=now")
	packed, kinds := m.sizes()
	each := func(n int64) float64 { return float64(n) / float64(m.decisions) }
	year := m.year(each(packed - m.segments))
	b.ReportMetric(float64(m.decisions), "decisions")
	b.ReportMetric(float64(m.commits), "commits")
	b.ReportMetric(each(m.segments), "segment-B/decision")
	b.ReportMetric(each(loose), "loose-B/decision")
	b.ReportMetric(each(packed), "packed-B/decision")
	b.ReportMetric(float64(m.flushing.Microseconds())/float64(m.decisions), "flush-us/decision")
	b.Logf("%d worker deployments decided %d to %d times each in %d days", len(m.about), least, most, m.days)
	b.Logf("packed %d bytes: segments %d, commits %d, trees %d, index and the rest %d; a decision of a year takes %.1f", packed, kinds["blob"],
		kinds["commit"], kinds["tree"], packed-kinds["blob"]-kinds["commit"]-kinds["tree"], year)
	require.GreaterOrEqual(b, m.decisions*365, yearly*m.days*len(m.about), "worker deployments decide too seldom")
	if m.days >= 365 {
		require.GreaterOrEqual(b, least, yearly, "a worker deployment decides too seldom")
	}
	if len(m.about) >= fleet*9/10 { // in a short run some may have decided nothing
		b.ReportMetric(year*fleet*yearly/1e6, "MB/year")
		require.Less(b, year*fleet*yearly, mostOfYear, "bytes for a year of %d worker deployments with %d decisions each", fleet, yearly)
	}
	for _, x := range m.months {
		require.Less(b, x, 1.15*each(m.segments), "bytes a decision in the segments of a month: %v", m.months)
	}
	m.readBack()
}

// year is what a decision takes in a year, in bytes, beside and with what is no segment. A run of some days pays once what a month pays once,
// and goes on as its last day was.
func (m *measured) year(beside float64) float64 {
	all := float64(m.segments) / float64(m.decisions)
	if m.days >= wholeMonth {
		return all + beside
	}
	once := float64(m.segments) - m.lastDay*float64(m.decisions)
	return m.lastDay + once/(float64(len(m.about))*yearly/12) + beside
}

// sizes of all files of objects, and of what is packed by the kind of object: bytes.
func (m *measured) sizes() (all int64, kinds map[string]int64) {
	require.NoError(m.b, filepath.Walk(filepath.Join(m.repo.Dir, "objects"), func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			all += info.Size()
		}
		return err
	}))
	kinds = map[string]int64{}
	for line := range strings.Lines(m.repo.Git("cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectsize:disk)")) {
		var kind string
		var size int64
		_, err := fmt.Sscan(line, &kind, &size)
		require.NoError(m.b, err)
		kinds[kind] += size
	}
	return all, kinds
}

// readBack reads all that was recorded, and what is there of one worker deployment.
func (m *measured) readBack() {
	one := ""
	for name := range m.about {
		one = max(one, name)
	}
	for _, q := range []struct {
		what string
		n    int
		gitops.DecisionQuery
	}{
		{"all", m.decisions, gitops.DecisionQuery{Order: gitops.OldestFirst}},
		{"one worker deployment's", m.about[one], gitops.DecisionQuery{Order: gitops.OldestFirst, Filter: decisions.Filter{Deployment: one}}},
		{"one worker deployment's last 20", 20, gitops.DecisionQuery{Order: gitops.NewestFirst, Filter: decisions.Filter{Deployment: one}}},
	} {
		start, n := time.Now(), 0
		for _, err := range m.ref.Read(m.b.Context(), q.DecisionQuery) {
			require.NoError(m.b, err)
			if n++; n == q.n && q.Order == gitops.NewestFirst {
				break
			}
		}
		m.b.Logf("read %s: %d decisions in %s", q.what, n, time.Since(start).Round(time.Millisecond))
		require.Equal(m.b, q.n, n)
	}
}
