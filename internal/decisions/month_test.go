//go:build size

package decisions_test

import (
	"bytes"
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/decisions"
	"github.com/rampart-gitops/rampart/policy"
)

const flush = 15 * time.Minute

// BenchmarkMonth is a month, which is an epoch, of 1 000 worker deployments: on a real ref, one commit a quarter of an hour. A
// hundred of them are played by the real planner and judged by the real engine, and kept in the folder for temporary files; the
// others are like one of these, with another name, other hashes, at other times.
func BenchmarkMonth(b *testing.B) {
	const played = 100
	c := company{deployments: played, days: 31 + spread, start: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC).Add(-spread * 24 * time.Hour)}
	files := c.files(b)
	for b.Loop() {
		from := c.start.Add(spread * 24 * time.Hour)
		m := measured{b: b, git: bare(b), state: decisions.NewState(), next: from.Add(flush), from: from, to: from.Add(28 * 24 * time.Hour)}
		m.all(files, 1000)
		m.report()
	}
}

// spread is by how many days at most those that are alike are apart.
const spread = 3

// likeness makes decisions about another worker deployment out of one's.
type likeness struct {
	n     int
	name  string
	later time.Duration
}

var (
	hashes   = regexp.MustCompile(`(sha256:)?\b[0-9a-f]{8,64}\b`)
	instants = regexp.MustCompile(`\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
)

func (l likeness) of(d decisions.Decision) decisions.Decision {
	d.Timestamp = d.Timestamp.Add(l.later)
	d.Input, d.Result = l.text(d.Input), l.text(d.Result)
	return d
}

func (l likeness) text(b []byte) []byte {
	if l.n > 0 {
		b = bytes.ReplaceAll(b, []byte(l.name), fmt.Appendf(nil, "%s-%d", l.name, l.n))
		b = hashes.ReplaceAllFunc(b, l.hash)
	}
	return instants.ReplaceAllFunc(b, func(s []byte) []byte {
		t, err := time.Parse(time.RFC3339, string(s))
		if err != nil {
			return s
		}
		return []byte(t.Add(l.later).Format(time.RFC3339))
	})
}

// hash is another one, which begins like another one where this one begins like that one.
func (l likeness) hash(s []byte) []byte {
	if !bytes.ContainsAny(s, "abcdef") || bytes.HasPrefix(s, []byte("sha256:")) {
		return s
	}
	var out []byte
	for i := 0; i < len(s); i += 8 {
		end := min(i+8, len(s))
		h := fnv.New64a()
		fmt.Fprintf(h, "%d %s", l.n, s[:end])
		out = append(out, fmt.Sprintf("%016x", h.Sum64()*0x9E3779B97F4A7C15)[:end-i]...)
	}
	return out
}

// files holds the decisions of each worker deployment.
func (c company) files(b *testing.B) []string {
	dir := filepath.Join(os.TempDir(), "rampart-decisions-of-a-month")
	require.NoError(b, os.MkdirAll(dir, 0o755))
	engine := policy.Compile(policy.Config{})
	files := make([]string, c.deployments)
	work := make(chan int)
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(func() {
			for i := range work {
				c.file(b, files[i], i, engine)
			}
		})
	}
	for i := range files {
		files[i] = filepath.Join(dir, fmt.Sprintf("%04d.zst", i))
		if _, err := os.Stat(files[i]); err != nil {
			work <- i
		}
	}
	close(work)
	all.Wait()
	return files
}

func (c company) file(b *testing.B, name string, i int, engine *policy.Engine) {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(256<<10))
	require.NoError(b, err)
	require.NoError(b, decisions.WriteLines(w, c.each(b, i, engine)...))
	require.NoError(b, w.Close())
	require.NoError(b, os.WriteFile(name, out.Bytes(), 0o644))
}

// queue gives the decisions of many files in the order of their time.
type queue []*lines

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].held.Timestamp.Before(q[j].held.Timestamp) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*lines)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// measured is one run of the measurement.
type measured struct {
	b       *testing.B
	git     string
	state   *decisions.State
	next    time.Time
	pending []decisions.Decision
	tip     string
	// from and to bound the time.
	from, to time.Time

	// one of the deployments.
	one       string
	segments  [][]byte
	decisions int
	bytes     int
	encoding  time.Duration
}

// all takes the decisions of so many deployments.
func (m *measured) all(files []string, deployments int) {
	r := rand.New(rand.NewPCG(11, 13))
	var q queue
	for i := range deployments {
		like := likeness{n: i / len(files), later: time.Duration(r.IntN(spread*86400)) * time.Second}
		l := m.open(files[i%len(files)], like)
		defer l.close()
		if l.held != nil {
			q = append(q, l)
		}
	}
	for heap.Init(&q); q.Len() > 0; {
		m.take(*q[0].held)
		if q[0].advance(); q[0].held == nil {
			heap.Pop(&q)
		} else {
			heap.Fix(&q, 0)
		}
	}
	m.flush()
}

// lines are the decisions of one file, of which one is held.
type lines struct {
	b        *testing.B
	file     *os.File
	zstd     *zstd.Decoder
	json     *json.Decoder
	held     *decisions.Decision
	like     likeness
	from, to time.Time
}

func (m *measured) open(name string, like likeness) *lines {
	b := m.b
	f, err := os.Open(name)
	require.NoError(b, err)
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	require.NoError(b, err)
	l := &lines{b: b, file: f, zstd: z, json: json.NewDecoder(z), like: like, from: m.from, to: m.to}
	l.advance()
	return l
}

// advance holds the next decision of the time that is measured; nil: there is none.
func (l *lines) advance() {
	for {
		l.held = new(decisions.Decision)
		if err := l.json.Decode(l.held); errors.Is(err, io.EOF) {
			l.held = nil
			return
		} else {
			require.NoError(l.b, err)
		}
		if at := l.held.Timestamp.Add(l.like.later); at.Before(l.from) || !at.Before(l.to) {
			continue
		}
		if l.like.name == "" {
			name, err := l.held.Deployment()
			require.NoError(l.b, err)
			l.like.name = name.Name
		}
		*l.held = l.like.of(*l.held)
		return
	}
}

func (l *lines) close() {
	l.zstd.Close()
	require.NoError(l.b, l.file.Close())
}

func (m *measured) take(d decisions.Decision) {
	for !d.Timestamp.Before(m.next) {
		m.flush()
		m.next = m.next.Add(flush)
	}
	m.pending = append(m.pending, d)
	if m.one == "" {
		name, err := d.Deployment()
		require.NoError(m.b, err)
		m.one = name.String()
	}
}

// flush is a commit whose tree has the segment alone.
func (m *measured) flush() {
	if len(m.pending) == 0 {
		return
	}
	start := time.Now()
	segment, err := decisions.NewEncoder(m.state).Append(m.pending)
	require.NoError(m.b, err)
	m.encoding += time.Since(start)
	if n := len(m.segments) + 1; n%96 == 0 {
		m.b.Logf("day %d: %d decisions, %d bytes", n/96, m.decisions+len(m.pending), m.bytes+len(segment))
		if testing.Verbose() {
			fmt.Println("day", n/96, m.decisions+len(m.pending), m.bytes+len(segment))
		}
	}
	m.segments, m.decisions, m.bytes = append(m.segments, segment), m.decisions+len(m.pending), m.bytes+len(segment)
	m.pending = m.pending[:0]
	blob := m.run(segment, "hash-object", "-w", "--stdin")
	tree := m.run(fmt.Appendf(nil, "100644 blob %s\tsegment\n", blob), "mktree")
	args := []string{"commit-tree", tree, "-m", fmt.Sprintf("epoch 2026-03, segment %d", len(m.segments)-1)}
	if m.tip != "" {
		args = append(args, "-p", m.tip)
	}
	m.tip = m.run(nil, args...)
	m.run(nil, "update-ref", "refs/rampart/decisions", m.tip)
}

func bare(b *testing.B) string {
	dir := b.TempDir()
	out, err := exec.CommandContext(b.Context(), "git", "init", "-q", "--bare", dir).CombinedOutput()
	require.NoError(b, err, string(out))
	return dir
}

func (m *measured) run(in []byte, args ...string) string {
	cmd := exec.CommandContext(m.b.Context(), "git", append([]string{"-C", m.git, "-c", "user.name=rampart", "-c", "user.email=rampart@example.com", "-c", "gc.auto=0"}, args...)...)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	require.NoError(m.b, err, args)
	return strings.TrimSpace(string(out))
}

// size of the objects, in bytes of their files.
func (m *measured) size() int64 {
	var n int64
	require.NoError(m.b, filepath.WalkDir(filepath.Join(m.git, "objects"), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		n += info.Size()
		return err
	}))
	return n
}

func (m *measured) report() {
	b, each := m.b, func(n int64) float64 { return float64(n) / float64(m.decisions) }
	loose := m.size()
	m.run(nil, "gc", "-q", "--prune=now")
	packed := m.size()
	b.ReportMetric(float64(m.decisions), "decisions")
	b.ReportMetric(float64(len(m.segments)), "commits")
	b.ReportMetric(each(int64(m.bytes)), "segment-B/decision")
	b.ReportMetric(each(loose), "loose-B/decision")
	b.ReportMetric(each(packed), "packed-B/decision")
	b.ReportMetric(float64(m.encoding.Microseconds())/float64(m.decisions), "encode-us/decision")
	b.Log(m.run(nil, "count-objects", "-v"))
	for name, f := range map[string]decisions.Filter{"all": {}, "one deployment's": {Deployment: m.one}} {
		start, d, n := time.Now(), decisions.NewDecoder(decisions.NewState()), 0
		for _, s := range m.segments {
			got, err := d.Decode(s, f)
			require.NoError(b, err)
			n += len(got)
		}
		b.Logf("read %s: %d decisions in %s", name, n, time.Since(start))
	}
}
