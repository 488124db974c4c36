package auditlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// slowRef is read back only when it is told to.
type slowRef struct {
	brokenRef
	earlier []auditlog.Decision
	reading chan struct{}
	goOn    chan struct{}
}

func (s *slowRef) Read(ctx context.Context, _ auditlog.Query) iter.Seq2[auditlog.Decision, error] {
	return func(yield func(auditlog.Decision, error) bool) {
		s.reading <- struct{}{}
		select {
		case <-s.goOn:
		case <-ctx.Done():
			yield(auditlog.Decision{}, ctx.Err())
			return
		}
		for _, d := range slices.Backward(s.earlier) {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func spooled(t *testing.T, spool string) int {
	t.Helper()
	data, err := os.ReadFile(spool)
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	return bytes.Count(data, []byte("\n"))
}

// A bot that is killed while it reads what was recorded last has lost nothing, and what was carried out is recorded in
// any case.
func TestSpoolIsWrittenBeforeTheRefIsRead(t *testing.T) {
	before := newBot(t, nil, "")
	l := before.open()
	record(l, held("checkout", noon), held("search", noon))
	closeLog(t, l)

	ref := &slowRef{earlier: before.recorded(), reading: make(chan struct{}, 1), goOn: make(chan struct{})}
	spool := filepath.Join(t.TempDir(), "spool")
	b := newBot(t, ref, spool)
	b.cfg.FlushCount = 1
	l = b.open()
	later := noon.Add(time.Hour)
	l.Record(t.Context(), []rollout.Made{{Decision: held("checkout", later), Done: true}, {Decision: held("search", later)}})
	<-ref.reading
	require.Equal(t, 2, spooled(t, spool), "while the ref is read")
	record(l, held("search", later.Add(time.Minute), finding(func(f *rollout.Finding) { f.Rule = "acme.other" })))
	require.Eventually(t, func() bool { return spooled(t, spool) == 3 }, 10*time.Second, time.Millisecond)
	require.Zero(t, ref.count(), "nothing comes to the ref that is not compared")
	left := killed(t, spool, "")

	close(ref.goOn)
	closeLog(t, l)
	require.Len(t, ref.kept, 2, "the search that stands is not recorded again")
	require.Zero(t, spooled(t, spool))

	again := &brokenRef{}
	closeLog(t, newBot(t, again, killed(t, left, "")).open())
	require.Len(t, again.kept, 3, "of the killed one, on a ref that has nothing")

	// The ref has what was recorded before; or what the killed one brought there too, which it had no time to take from
	// the spool.
	brought := killed(t, left, "")
	lines := bytes.SplitAfter(contentOf(t, left), []byte("\n"))
	require.NoError(t, os.WriteFile(brought, slices.Concat(lines[0], lines[2]), 0o600))
	for spool, earlier := range map[string][]auditlog.Decision{left: before.recorded(), brought: append(before.recorded(), ref.kept...)} {
		on := &slowRef{earlier: earlier, reading: make(chan struct{}, 1), goOn: make(chan struct{})}
		close(on.goOn)
		b := newBot(t, on, spool)
		l := b.open()
		record(l, held("search", later.Add(2*time.Minute), finding(func(f *rollout.Finding) { f.Rule = "acme.other" })))
		closeLog(t, l)
		want := ids(ref.kept) // but what stands is not recorded again
		if spool == brought {
			want = want[:1] // what was carried out is given again: the ref knows it by its ID
		}
		require.Equal(t, want, ids(on.kept))
	}
}

func contentOf(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return data
}

func ids(ds []auditlog.Decision) []string {
	var out []string
	for _, d := range ds {
		out = append(out, d.ID)
	}
	return out
}

// The first cycle of a bot may end before all worker deployments had their turn.
func TestEachSubjectIsComparedWhenItAppears(t *testing.T) {
	r := gittest.NewBareRepo(t)
	now := time.Now().UTC()
	l := newBot(t, openRef(t, r), filepath.Join(t.TempDir(), "spool")).open()
	record(l, held("checkout", now), held("search", now))
	closeLog(t, l)

	b := newBot(t, openRef(t, r), filepath.Join(t.TempDir(), "spool"))
	l = b.open()
	record(l, held("checkout", now.Add(time.Minute)), held("cart", now.Add(time.Minute)))
	require.Eventually(t, func() bool { return strings.Contains(b.lines.String(), "cart") }, 20*time.Second, time.Millisecond)
	record(l, held("search", now.Add(2*time.Minute)))
	record(l, held("search", now.Add(3*time.Minute), finding(func(f *rollout.Finding) { f.Rule = "acme.other" })))
	record(l, held("search", now.Add(4*time.Minute)))
	closeLog(t, l)
	require.Equal(t, []string{"checkout", "search", "cart", "search", "search"}, onRef(t, r), "compared once, and not again")
}

// A pipe that is not read keeps nothing from the ref, and takes so much memory and no more.
func TestLinesThatNobodyReads(t *testing.T) {
	reader, pipe := io.Pipe()
	t.Cleanup(func() { require.NoError(t, reader.Close()) })
	ref := &brokenRef{}
	spool := filepath.Join(t.TempDir(), "spool")
	b := newBot(t, ref, spool)
	b.cfg.Lines, b.cfg.FlushCount = pipe, 1
	document := b.cfg.Document
	b.cfg.Document = func(d *rollout.Decision) (json.RawMessage, error) {
		text, err := document(d)
		return append(text[:len(text)-1], `,"much":"`+strings.Repeat("0", 1<<20)+`"}`...), err
	}
	l := b.open()
	kept := func() int { ref.mu.Lock(); defer ref.mu.Unlock(); return len(ref.kept) }
	for i := range 12 {
		record(l, held("checkout", noon.Add(time.Duration(i)*time.Minute), finding(func(f *rollout.Finding) { f.Rule = "acme." + string(rune('a'+i)) })))
		require.Eventually(t, func() bool { return kept() == i+1 }, 10*time.Second, time.Millisecond)
	}
	dropped := func() int { return strings.Count(b.logs.String(), "lines of decisions are dropped") }
	require.Eventually(t, func() bool { return dropped() > 0 }, 10*time.Second, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.Error(t, l.Close(ctx))
	require.Equal(t, 1, dropped(), "said once")
	require.Zero(t, spooled(t, spool))
}

// endingRef takes its time to stop when it is told to.
type endingRef struct {
	brokenRef
	busy atomic.Bool
}

func (e *endingRef) Append(ctx context.Context, _ []auditlog.Decision) error {
	e.busy.Store(true)
	defer e.busy.Store(false)
	<-ctx.Done()
	<-time.After(100 * time.Millisecond) // a push that is cut off
	return ctx.Err()
}

// The caller that closes the log closes its ref next.
func TestNothingUsesTheRefAfterClose(t *testing.T) {
	ref := &endingRef{}
	spool := filepath.Join(t.TempDir(), "spool")
	b := newBot(t, ref, spool)
	b.cfg.FlushCount = 1
	l := b.open()
	record(l, held("checkout", noon))
	require.Eventually(t, ref.busy.Load, 10*time.Second, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, l.Close(ctx), context.DeadlineExceeded)
	require.False(t, ref.busy.Load())
	require.Equal(t, 1, spooled(t, spool))
	require.Contains(t, b.logs.String(), "wait in the spool")
}
