//go:build size

package decisions_test

import (
	"bytes"
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/decisions"
	"github.com/rampart-gitops/rampart/policy"
)

// playedMonth is a company in a month, or in a part of one. What it decides is in files, one for each worker deployment.
type playedMonth struct {
	company
	to  time.Time
	dir string
}

// files plays what is not there yet.
func (c playedMonth) files(b *testing.B, engine *policy.Engine) []string {
	require.NoError(b, os.MkdirAll(c.dir, 0o755))
	files := make([]string, c.deployments)
	work := make(chan int, len(files))
	for i := range files {
		files[i] = filepath.Join(c.dir, fmt.Sprintf("%04d-%s.zst", i, c.to.Format(time.DateOnly)))
		if _, err := os.Stat(files[i]); err != nil {
			work <- i
		}
	}
	close(work)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := range work {
				c.file(b, files[i], i, engine)
			}
		})
	}
	all.Wait()
	if b.Failed() {
		b.FailNow()
	}
	return files
}

func (c playedMonth) file(b *testing.B, name string, i int, engine *policy.Engine) {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(256<<10))
	require.NoError(b, err)
	require.NoError(b, decisions.WriteLines(w, c.each(b, i, engine)...))
	require.NoError(b, w.Close())
	require.NoError(b, os.WriteFile(name, out.Bytes(), 0o644))
}

// inOrder gives the decisions of many files from one time to another, in the order of their time.
func inOrder(b *testing.B, files []string, from, to time.Time, visit func(decisions.Decision)) {
	var q queue
	for _, name := range files {
		l := openLines(b, name, from, to)
		defer l.close()
		if l.held != nil {
			q = append(q, l)
		}
	}
	for heap.Init(&q); q.Len() > 0; {
		visit(*q[0].held)
		if q[0].advance(); q[0].held == nil {
			heap.Pop(&q)
		} else {
			heap.Fix(&q, 0)
		}
	}
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

// lines are the decisions of one file, of which one is held.
type lines struct {
	b        *testing.B
	file     *os.File
	zstd     *zstd.Decoder
	json     *json.Decoder
	held     *decisions.Decision
	from, to time.Time
}

func openLines(b *testing.B, name string, from, to time.Time) *lines {
	f, err := os.Open(name)
	require.NoError(b, err)
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	require.NoError(b, err)
	l := &lines{b: b, file: f, zstd: z, json: json.NewDecoder(z), from: from, to: to}
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
		if at := l.held.Timestamp; !at.Before(l.from) && at.Before(l.to) {
			return
		}
	}
}

func (l *lines) close() {
	l.zstd.Close()
	require.NoError(l.b, l.file.Close())
}
