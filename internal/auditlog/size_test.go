package auditlog_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/policy"
)

// A year of 1 000 worker deployments that decide 6 000 times each has to stay below so many bytes on the refs. A month
// of it is to be read in so long.
const (
	yearly      = 6000
	fleet       = 1000
	mostOfYear  = 1e9
	mostOfMonth = 10 * time.Second
)

// lead is played before what counts: a day does not begin with new worker deployments.
const lead = 48 * time.Hour

// BenchmarkDecisionLog measures what decisions take on the ref of a month, and how long they take to read. They are
// those of 1 000 worker deployments for a day, 6 000 a year each. Each is played by the real planner and judged by the
// real engine, with names, hashes, times and counts of its own. They are pushed to a real ref as the bot does, and the
// repository is packed as git gc packs it.
//
// DECISIONS says how many worker deployments for how many days, as 1000x1.
func BenchmarkDecisionLog(b *testing.B) {
	var deployments, days int
	_, err := fmt.Sscanf(cmp.Or(os.Getenv("DECISIONS"), "1000x1"), "%dx%d", &deployments, &days)
	require.NoError(b, err, "DECISIONS: want a number of worker deployments and of days, such as 1000x1")
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ds := company{deployments: deployments, days: days + int(lead/(24*time.Hour)), start: from.Add(-lead), counted: from,
		due: yearly * days / 365}.play(b)
	ds = slices.DeleteFunc(ds, func(d auditlog.Decision) bool { return d.Timestamp.Before(from) })
	for b.Loop() {
		r := gittest.NewBareRepo(b)
		r.Git("config", "gc.auto", "0")
		r.Git("config", "receive.autogc", "false")
		k := keeperAt(b, r.URL(), auditlog.DefaultRef)
		start, pushes, left := time.Now(), 0, ds
		for len(left) > 0 { // a quarter of an hour after the first that waits, or when 500 wait
			due := left[0].Timestamp.Add(15 * time.Minute)
			n := slices.IndexFunc(left, func(d auditlog.Decision) bool { return d.Timestamp.After(due) })
			if n < 0 {
				n = len(left)
			}
			n = min(n, 500)
			k.append(b, left[:n])
			left, pushes = left[n:], pushes+1
		}
		b.ReportMetric(float64(time.Since(start).Milliseconds())/float64(pushes), "ms/push")
		measure(b, r, pushes)
	}
}

// play gives the decisions of all worker deployments in the order of their time.
func (c company) play(b *testing.B) []auditlog.Decision {
	engine := policy.Compile(policy.Config{})
	parts := make([][]auditlog.Decision, c.deployments)
	work := make(chan int)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := range work {
				parts[i] = c.each(b, i, engine)
			}
		})
	}
	for i := range parts {
		work <- i
	}
	close(work)
	all.Wait()
	out := slices.Concat(parts...)
	slices.SortStableFunc(out, func(a, b auditlog.Decision) int { return a.Timestamp.Compare(b.Timestamp) })
	return out
}

// measure reports the size of a repository, and how long it takes to read a month of a fleet: its segments again and
// again.
func measure(b *testing.B, r *gittest.Repo, pushes int) {
	loose := size(b, r)
	r.Git("reflog", "expire", "--expire=now", "--all")
	r.Git("gc", "-q", "--prune=now")
	packed := size(b, r)
	n, json, _ := readAll(b, r, auditlog.DefaultRef)
	each := float64(packed) / float64(n)
	const month = fleet * yearly / 12
	read, _, took := readAll(b, r, again(b, r, month/n+1))
	took = took * month / time.Duration(read)
	b.ReportMetric(float64(n), "decisions")
	b.ReportMetric(float64(pushes), "pushes")
	b.ReportMetric(float64(json)/float64(n), "JSON-B/decision")
	b.ReportMetric(each, "B/decision")
	b.ReportMetric(float64(loose)/float64(n), "unpacked-B/decision")
	b.ReportMetric(each*fleet*yearly/1e6, "MB/year")
	b.ReportMetric(took.Seconds(), "s/month")
	b.Logf("segments: %v", r.Git("ls-tree", "-l", auditlog.DefaultRef+"/2026-01"))
	require.Less(b, each*fleet*yearly, mostOfYear, "bytes for a year of %d worker deployments with %d decisions each",
		fleet, yearly)
	require.Less(b, took, mostOfMonth, "to read a month of them")
}

// readAll reads all decisions below a ref from a repository that was never read before.
func readAll(b *testing.B, r *gittest.Repo, ref string) (n, json int, took time.Duration) {
	start := time.Now()
	archive, err := gitops.OpenArchive(gitops.ArchiveConfig{URL: r.URL(), Ref: ref, Dir: b.TempDir(), Log: slog.New(slog.DiscardHandler), Now: time.Now})
	require.NoError(b, err)
	for d, err := range auditlog.Read(b.Context(), archive, ref, auditlog.Query{}) {
		require.NoError(b, err)
		n, json = n+1, json+len(d.Input)+len(d.Result)
	}
	took = time.Since(start)
	require.NoError(b, archive.Close())
	return n, json, took
}

// again makes a ref on which a month has each of its closed segments so many times. Each has other bytes: a frame that
// readers skip (RFC 8878) comes first.
func again(b *testing.B, r *gittest.Repo, times int) (ref string) {
	var names, hashes []string
	for line := range strings.Lines(r.Git("ls-tree", auditlog.DefaultRef+"/2026-01")) {
		if fields := strings.Fields(line); !strings.Contains(fields[3], ".open.") {
			hashes, names = append(hashes, fields[2]), append(names, fields[3])
		}
	}
	require.NotEmpty(b, names, "DECISIONS: want enough for a segment that is closed")
	var tree strings.Builder
	for i := range times {
		for k, segment := range r.Blobs(hashes...) {
			number := i*len(names) + k + 1
			skipped := binary.LittleEndian.AppendUint32([]byte("\x50\x2a\x4d\x18\x04\x00\x00\x00"), uint32(number))
			hash := r.GitInput(append(skipped, segment...), "hash-object", "-w", "--stdin")
			fmt.Fprintf(&tree, "100644 blob %s\t%06d%s\n", hash, number, names[k][6:])
		}
	}
	ref = auditlog.DefaultRef + "-again"
	commit := r.Git("commit-tree", "-m", "again", r.GitInput([]byte(tree.String()), "mktree"))
	r.Git("update-ref", ref+"/2026-01", commit)
	return ref
}

// size of all objects, in bytes.
func size(b *testing.B, r *gittest.Repo) (all int64) {
	require.NoError(b, filepath.Walk(filepath.Join(r.Dir, "objects"), func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			all += info.Size()
		}
		return err
	}))
	return all
}
