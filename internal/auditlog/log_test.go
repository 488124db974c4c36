package auditlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
)

// held is a decision that holds a ramp of a worker deployment.
func held(name string, at time.Time, changes ...func(*rollout.Decision)) *rollout.Decision {
	d := &rollout.Decision{}
	d.Snapshot.Deployment = rollout.Name{Namespace: "shop", Name: name}
	d.Snapshot.Environment.Name = "prod"
	d.Snapshot.Now = at
	d.Proposal = rollout.Proposal{Target: &rollout.Target{BuildID: "v2"}, State: rollout.State{Reason: rollout.Ramping},
		Actions: []rollout.Action{{ID: "Ramp/v2@10%", Kind: rollout.Ramp, BuildID: "v2"}}}
	d.Plan = rollout.Plan{Deployment: d.Snapshot.Deployment, Verdicts: rollout.Verdicts{PolicyDigest: "sha256:1", Spec: rollout.Verdict{Effect: rollout.Allow},
		Actions: map[string]rollout.Verdict{"Ramp/v2@10%": {Effect: rollout.HoldEffect, Findings: []rollout.Finding{
			{Package: "rampart.rollout", Rule: "acme.slo", Effect: rollout.HoldEffect, Message: "3 of 10"}}}}}}
	for _, change := range changes {
		change(d)
	}
	return d
}

func finding(change func(*rollout.Finding)) func(*rollout.Decision) {
	return func(d *rollout.Decision) { change(&d.Plan.Verdicts.Actions["Ramp/v2@10%"].Findings[0]) }
}

// bot is what a log has around it.
type bot struct {
	t     *testing.T
	cfg   auditlog.Config
	lines *buffer
	logs  *buffer
}

// buffer may be written to and read at once.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
	fail error
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return 0, b.fail
	}
	return b.data.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

func newBot(t *testing.T, store auditlog.Store, spool string) *bot {
	t.Helper()
	b := &bot{t: t, lines: &buffer{}, logs: &buffer{}}
	b.cfg = auditlog.Config{Masker: masker(t), Labels: map[string]string{"id": "bot"}, Lines: b.lines, Store: store, Spool: spool,
		Log: slog.New(slog.NewTextHandler(b.logs, nil)), Now: func() time.Time { return time.Now().UTC() },
		Document: func(d *rollout.Decision) (json.RawMessage, error) {
			document, err := policy.NewDocument(d.Snapshot, d.Proposal)
			if err != nil {
				return nil, err
			}
			return json.Marshal(document)
		}}
	return b
}

func (b *bot) open() *auditlog.Log {
	b.t.Helper()
	l, err := auditlog.New(b.cfg)
	require.NoError(b.t, err)
	return l
}

// recorded are the lines so far.
func (b *bot) recorded() []auditlog.Decision {
	b.t.Helper()
	return collect(b.t, auditlog.ReadLines(b.t.Context(), strings.NewReader(b.lines.String())))
}

func closeLog(t *testing.T, l *auditlog.Log) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(t, l.Close(ctx))
}

func record(l *auditlog.Log, ds ...*rollout.Decision) {
	var made []rollout.Made
	for _, d := range ds {
		made = append(made, rollout.Made{Decision: d})
	}
	l.Record(context.Background(), made)
}

func TestWhatIsNew(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*rollout.Decision)
		done   bool
		want   bool
	}{
		"nothing": {func(*rollout.Decision) {}, false, false},
		"counts":  {finding(func(f *rollout.Finding) { f.Message, f.Evidence = "4 of 10", json.RawMessage(`4`) }), false, false},
		"a rule again": {func(d *rollout.Decision) {
			v := d.Plan.Verdicts.Actions["Ramp/v2@10%"]
			again := v.Findings[0]
			again.Message = "of another queue"
			v.Findings = append(v.Findings, again)
			d.Plan.Verdicts.Actions["Ramp/v2@10%"] = v
		}, false, false},
		"a rule":        {finding(func(f *rollout.Finding) { f.Rule = "acme.other" }), false, true},
		"a waiver":      {finding(func(f *rollout.Finding) { f.Waived = "shop/launch" }), false, true},
		"the state":     {func(d *rollout.Decision) { d.Proposal.State.Reason = rollout.RolloutComplete }, false, true},
		"the target":    {func(d *rollout.Decision) { d.Proposal.Target.BuildID = "v3" }, false, true},
		"the policies":  {func(d *rollout.Decision) { d.Plan.Verdicts.PolicyDigest = "sha256:2" }, false, true},
		"an action":     {func(d *rollout.Decision) { d.Proposal.Actions[0].ID = "Ramp/v2@20%" }, false, true},
		"no action":     {func(d *rollout.Decision) { d.Proposal.Actions = nil }, false, true},
		"the spec":      {func(d *rollout.Decision) { d.Plan.Verdicts.Spec.Effect = rollout.HoldEffect }, false, true},
		"another one's": {func(d *rollout.Decision) { d.Snapshot.Deployment.Name = "search" }, false, true},
		"carried out":   {func(*rollout.Decision) {}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBot(t, nil, "")
			l := b.open()
			record(l, held("checkout", noon))
			second := held("checkout", noon.Add(time.Minute), c.change)
			// A decision that lowered something is handed over when it did, and again at the end of the cycle.
			l.Record(t.Context(), []rollout.Made{{Decision: second, Done: c.done}, {Decision: second, Done: c.done}, {Decision: second}})
			closeLog(t, l)
			want := 1
			if c.want {
				want = 2
			}
			require.Len(t, b.recorded(), want)
		})
	}
}

func openRef(t *testing.T, r *gittest.Repo) *auditlog.Ref {
	t.Helper()
	k := keeperAt(t, r.URL(), auditlog.DefaultRef)
	k.now = time.Now()
	return k.Ref
}

// onRef are the deployments on the refs, the oldest decision first.
func onRef(t *testing.T, r *gittest.Repo) []string {
	t.Helper()
	var out []string
	for _, d := range collect(t, openRef(t, r).Read(t.Context(), auditlog.Query{})) {
		name, err := d.Deployment()
		require.NoError(t, err)
		out = append(out, name.Name)
	}
	return out
}

// A bot that starts goes on from what is on the ref: with an empty cache, and as another one.
func TestRestartRecordsNothingNew(t *testing.T) {
	r := gittest.NewBareRepo(t)
	now := time.Now().UTC()
	first := newBot(t, openRef(t, r), filepath.Join(t.TempDir(), "spool"))
	l := first.open()
	record(l, held("checkout", now), held("search", now))
	closeLog(t, l)
	require.Equal(t, []string{"checkout", "search"}, onRef(t, r))

	second := newBot(t, openRef(t, r), filepath.Join(t.TempDir(), "spool"))
	l = second.open()
	changed := held("search", now.Add(time.Minute), finding(func(f *rollout.Finding) { f.Rule = "acme.other" }))
	record(l, held("checkout", now.Add(time.Minute)), changed)
	record(l, held("checkout", now.Add(2*time.Minute)), held("cart", now.Add(2*time.Minute)))
	closeLog(t, l)
	require.Equal(t, []string{"checkout", "search", "search", "cart"}, onRef(t, r))
	require.Len(t, second.recorded(), 3, "the lines begin with how each worker deployment is")
}

// What was recorded last is what counts, also where it is in the month before.
func TestRestartGoesBackByMonths(t *testing.T) {
	r := gittest.NewBareRepo(t)
	now := time.Now().UTC()
	before := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC).Add(-time.Hour)
	other := finding(func(f *rollout.Finding) { f.Rule = "acme.other" })
	first := newBot(t, openRef(t, r), filepath.Join(t.TempDir(), "spool"))
	l := first.open()
	record(l, held("checkout", before, other), held("search", before.Add(time.Minute)))
	record(l, held("checkout", now), held("cart", now, other))
	record(l, held("cart", now.Add(time.Second)))
	closeLog(t, l)
	require.Len(t, strings.Split(r.Git("for-each-ref", "refs/rampart"), "\n"), 2)

	second := newBot(t, openRef(t, r), filepath.Join(t.TempDir(), "spool"))
	l = second.open()
	later := now.Add(time.Minute)
	record(l, held("checkout", later), held("search", later), held("cart", later))
	closeLog(t, l)
	require.Len(t, onRef(t, r), 5)
}

// killed copies a spool as a killed bot leaves it, with half a line at its end.
func killed(t *testing.T, spool, rest string) string {
	t.Helper()
	data, err := os.ReadFile(spool)
	require.NoError(t, err)
	left := filepath.Join(t.TempDir(), "spool")
	require.NoError(t, os.WriteFile(left, append(data, rest...), 0o600))
	return left
}

func TestSpoolOfAKilledBot(t *testing.T) {
	r := gittest.NewBareRepo(t)
	now := time.Now().UTC()
	spool := filepath.Join(t.TempDir(), "cache", "spool")
	first := newBot(t, openRef(t, r), spool)
	l := first.open()
	record(l, held("checkout", now))
	require.Eventually(t, func() bool { data, _ := os.ReadFile(spool); return bytes.HasSuffix(data, []byte("\n")) }, 10*time.Second, time.Millisecond)
	info, err := os.Stat(spool)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Empty(t, onRef(t, r), "it waits")
	left := killed(t, spool, `{"decision_id":"half`)

	second := newBot(t, openRef(t, r), left)
	l2 := second.open()
	require.Eventually(t, func() bool { return len(onRef(t, r)) == 1 }, 20*time.Second, 10*time.Millisecond, "at the start")
	record(l2, held("checkout", now.Add(time.Minute)))
	closeLog(t, l2)
	require.Equal(t, []string{"checkout"}, onRef(t, r), "the spool says what was recorded last")

	// The first was not killed after all, or only after its push: nothing comes twice.
	closeLog(t, l)
	require.Equal(t, []string{"checkout"}, onRef(t, r))
	data, err := os.ReadFile(spool)
	require.NoError(t, err)
	require.Empty(t, data, "what came to the ref leaves the spool")
}

func TestDamagedSpoolIsPutAside(t *testing.T) {
	spool := filepath.Join(t.TempDir(), "spool")
	require.NoError(t, os.WriteFile(spool, []byte("\x00\x00\n{}\n"), 0o600))
	r := gittest.NewBareRepo(t)
	b := newBot(t, openRef(t, r), spool)
	l := b.open()
	record(l, held("checkout", time.Now().UTC()))
	closeLog(t, l)
	require.Equal(t, []string{"checkout"}, onRef(t, r))
	require.Contains(t, b.logs.String(), "put aside")
	require.FileExists(t, spool+".damaged")
}

// brokenRef is a ref that cannot be reached until it can.
type brokenRef struct {
	mu    sync.Mutex
	err   error
	hang  bool
	calls int
	kept  []auditlog.Decision
}

func (b *brokenRef) Append(ctx context.Context, ds []auditlog.Decision) error {
	if b.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	if b.err == nil {
		b.kept = append(b.kept, ds...)
	}
	return b.err
}

func (b *brokenRef) Read(context.Context, auditlog.Query) iter.Seq2[auditlog.Decision, error] {
	return func(func(auditlog.Decision, error) bool) {}
}

func (b *brokenRef) count() int { b.mu.Lock(); defer b.mu.Unlock(); return b.calls }

type refusal struct{ error }

func (refusal) Lasting() bool { return true }

// A ref that does not work costs nothing but itself: lines are written, cycles go on, the spool keeps what waits.
func TestRefThatDoesNotWork(t *testing.T) {
	for name, ref := range map[string]*brokenRef{"away": {err: errors.New("no route")}, "refused": {err: refusal{errors.New("branches only")}}, "hangs": {hang: true}} {
		t.Run(name, func(t *testing.T) {
			spool := filepath.Join(t.TempDir(), "spool")
			b := newBot(t, ref, spool)
			b.cfg.FlushCount = 1
			l := b.open()
			for i, name := range []string{"checkout", "search", "cart"} {
				record(l, held(name, noon))
				require.Eventually(t, func() bool { return strings.Count(b.lines.String(), "\n") == i+1 }, 10*time.Second, time.Millisecond)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_ = l.Close(ctx) // it may have to give up
			data, err := os.ReadFile(spool)
			require.NoError(t, err)
			require.Equal(t, 3, bytes.Count(data, []byte("\n")))
			if !ref.hang {
				require.Equal(t, 1, strings.Count(b.logs.String(), "could not be kept in Git"), "said once:\n%s", b.logs.String())
				require.LessOrEqual(t, ref.count(), 2, "not tried again at once, but at the end")
			}
			again := &brokenRef{}
			other := newBot(t, again, killed(t, spool, ""))
			closeLog(t, other.open())
			require.Len(t, again.kept, 3)
		})
	}
}

func TestFlushWhenManyOrLongWaited(t *testing.T) {
	require.LessOrEqual(t, auditlog.DefaultFlushSoon, time.Minute, "the first decisions come to the ref within a minute")
	ref := &brokenRef{}
	b := newBot(t, ref, filepath.Join(t.TempDir(), "spool"))
	b.cfg.FlushCount, b.cfg.FlushAfter = 2, time.Hour
	l := b.open()
	record(l, held("checkout", noon))
	require.Eventually(t, func() bool { return strings.Contains(b.lines.String(), "checkout") }, 10*time.Second, time.Millisecond)
	require.Zero(t, ref.count())
	record(l, held("search", noon))
	require.Eventually(t, func() bool { return ref.count() == 1 }, 10*time.Second, time.Millisecond, "two wait")
	require.Len(t, ref.kept, 2)
	closeLog(t, l)

	ref = &brokenRef{}
	b = newBot(t, ref, filepath.Join(t.TempDir(), "spool"))
	b.cfg.FlushSoon, b.cfg.FlushAfter = 20*time.Millisecond, time.Hour
	l = b.open()
	record(l, held("checkout", noon))
	require.Eventually(t, func() bool { return ref.count() == 1 }, 10*time.Second, time.Millisecond, "the first ones come soon")
	record(l, held("search", noon))
	require.Eventually(t, func() bool { return strings.Contains(b.lines.String(), "search") }, 10*time.Second, time.Millisecond)
	require.Equal(t, 1, ref.count(), "the next ones come together")
	closeLog(t, l)
	require.Len(t, ref.kept, 2)

	ref = &brokenRef{}
	b = newBot(t, ref, filepath.Join(t.TempDir(), "spool"))
	b.cfg.FlushSoon, b.cfg.FlushAfter = time.Millisecond, 20*time.Millisecond
	l = b.open()
	record(l, held("checkout", noon))
	require.Eventually(t, func() bool { return ref.count() == 1 }, 10*time.Second, time.Millisecond)
	record(l, held("search", noon))
	require.Eventually(t, func() bool { return ref.count() == 2 }, 10*time.Second, time.Millisecond, "it waited long enough")
	closeLog(t, l)
}

func TestLinesThatCannotBeWritten(t *testing.T) {
	b := newBot(t, nil, "")
	b.lines.fail = errors.New("no space left")
	l := b.open()
	record(l, held("checkout", noon))
	require.Eventually(t, func() bool { return strings.Contains(b.logs.String(), "no space left") }, 10*time.Second, time.Millisecond)
	b.lines.mu.Lock()
	b.lines.fail = nil
	b.lines.mu.Unlock()
	record(l, held("search", noon))
	closeLog(t, l)
	require.Len(t, b.recorded(), 2, "both, each once")
}

// What cannot be said of a decision is its own failure.
func TestDecisionThatCannotBeMade(t *testing.T) {
	b := newBot(t, nil, "")
	document := b.cfg.Document
	b.cfg.Document = func(d *rollout.Decision) (json.RawMessage, error) {
		if d.Snapshot.Deployment.Name == "checkout" {
			return nil, io.ErrUnexpectedEOF
		}
		return document(d)
	}
	l := b.open()
	record(l, held("checkout", noon), held("search", noon))
	closeLog(t, l)
	require.Len(t, b.recorded(), 1)
	require.Contains(t, b.logs.String(), "shop/checkout")
}

func TestFileIsRotated(t *testing.T) {
	name := filepath.Join(t.TempDir(), "decisions.jsonl")
	require.NoError(t, os.WriteFile(name, []byte("before\n"), 0o600))
	f, err := auditlog.OpenFile(name)
	require.NoError(t, err)
	write := func(s string) {
		_, err := f.Write([]byte(s))
		require.NoError(t, err)
	}
	content := func(name string) string {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		return string(data)
	}
	write("one\n")
	require.NoError(t, os.Rename(name, name+".1"))
	write("two\n")
	require.Equal(t, "before\none\n", content(name+".1"))
	require.Equal(t, "two\n", content(name))
	require.NoError(t, os.Rename(name, name+".2"))
	require.NoError(t, os.WriteFile(name, nil, 0o600)) // as logrotate does
	write("three\n")
	require.Equal(t, "two\n", content(name+".2"))
	require.Equal(t, "three\n", content(name))
	require.NoError(t, os.Remove(name))
	write("four\n")
	require.Equal(t, "four\n", content(name))
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, f.Close())
}

// The policies that judged are told from each other by revision, the bot's bundles too, however long ago their server
// confirmed them.
func TestBundlesAreRecorded(t *testing.T) {
	b := newBot(t, nil, "")
	l := b.open()
	record(l, held("checkout", noon, func(d *rollout.Decision) {
		d.Snapshot.Facts = map[string]rollout.Fact{"bundle.org": {Value: []byte(`"r7"`), ObservedAt: noon.Add(-time.Hour), Error: "not confirmed"},
			"bundle.team": {Error: "not there"}, "error_rate": {Value: []byte(`"r8"`)}}
	}))
	closeLog(t, l)
	require.Equal(t, map[string]auditlog.Bundle{"rampart": {Revision: "sha256:1"}, "org": {Revision: "r7"}}, b.recorded()[0].Bundles)
}
