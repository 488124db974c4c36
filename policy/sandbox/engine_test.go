package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/confined"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/lint"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/policytest"
)

// TestMain is the process that evaluates policies, too.
func TestMain(m *testing.M) { testneed.Main(m, confined.Serving("serve", Serve)) }

func self() *confined.Process { return confined.Self("serve") }

func compile(t testing.TB, cfg policy.Config) *Engine { return within(t, compileTime, cfg) }

func within(t testing.TB, limit time.Duration, cfg policy.Config) *Engine {
	t.Helper()
	e := compileWithin(limit, cfg, self)
	t.Cleanup(e.Close)
	return e
}

// A value that is within itself many times over: walking it never ends, and can't be stopped.
const endless = twice + `
forever if walk(shared(input.action.to), [_, "no"])
`

// told is what a person's policies say in passing.
const told = `package rampart.rollout

warn contains {"rule": "acme.told", "msg": sprintf("<%v>", [input.action.to]), "to": ["<", input.action.to], "until": "2026-03-04T12:00:00Z"}
`

var (
	ramp     = policytest.Ramp()
	reset    = policytest.Reset()
	proposal = policytest.Proposal(ramp, reset)
)

func document(t testing.TB) *policy.Document {
	t.Helper()
	d, err := policy.NewDocument(policytest.Snapshot(t), proposal)
	require.NoError(t, err)
	return d
}

func rulesOf(v rollout.Verdict) []string {
	var out []string
	for _, f := range v.Findings {
		out = append(out, f.Rule)
	}
	return out
}

// In a process of their own policies say what they say in this one, byte for byte.
func TestTheSameApart(t *testing.T) {
	testneed.Plain(t)
	day := policytest.Snapshot(t)
	for name, cfg := range map[string]policy.Config{
		"the library":       {},
		"a repository's":    {Modules: policytest.Modules(told), Data: []parse.DataFile{{Path: "policies/d.yaml", Content: "rampart: {config: {rollout: {freeze: {windows: [{name: tuesday, days: [tue]}]}}}}\n"}}},
		"broken":            {Modules: policytest.Modules(told, "package rampart.rollout\n\ndeny contains x if y\n")},
		"the bot's":         {Floor: []policy.Layer{{Name: "own", Modules: policytest.Modules(told)}}, Waivable: []string{"acme.*"}},
		"both":              {Modules: policytest.Modules(policytest.Deny("	input.action.to > 10")), Floor: []policy.Layer{{Name: "own", Modules: []parse.Module{{Path: "own/a.rego", Source: told}}}}},
		"an error":          {Modules: policytest.Modules(policytest.Deny("	time.parse_rfc3339_ns(\"never\") > 0"))},
		"commit statuses":   {Modules: policytest.Modules(policytest.Deny("	input.facts[\"status:argocd/workers\"].value == \"failure\"\n	input.git.author == \"Ada\""))},
		"the whole of it":   {Modules: policytest.Modules(policytest.Rules("warn contains {\"rule\": \"acme.all\", \"msg\": json.marshal(input)}\n"))},
		"too many findings": {Modules: policytest.Modules(policytest.Rules("deny contains {\"rule\": \"x\", \"msg\": \"m\", \"n\": i} if some i in numbers.range(1, 2000)\n"))},
	} {
		t.Run(name, func(t *testing.T) {
			apart, here := compile(t, cfg), policy.Compile(cfg)
			require.Equal(t, here.Digest(), apart.Digest())
			require.Equal(t, here.Problems(), apart.Problems())
			require.Equal(t, here.Looks().Statuses, apart.Looks().Statuses)
			for _, part := range []string{"git", "cluster", rollout.PartCounts(rollout.PhaseWindow), "references", "nothing"} {
				require.Equal(t, here.Looks().At(part), apart.Looks().At(part), part)
			}
			require.Empty(t, cmp.Diff(here.Judge(t.Context(), day, proposal), apart.Judge(t.Context(), day, proposal)))
			require.Empty(t, cmp.Diff(here.Judge(t.Context(), day, rollout.Proposal{}).Spec, apart.JudgeSpec(t.Context(), day)))
			d := document(t)
			for _, id := range []string{"", ramp.ID, reset.ID} {
				want, err := here.Explain(t.Context(), d, id)
				require.NoError(t, err)
				got, err := apart.Explain(t.Context(), d, id)
				require.NoError(t, err)
				require.Empty(t, cmp.Diff(want, got))
			}
			want, err := here.Ask(t.Context(), d, ramp.ID, "x := input.action.to; y := \"<\"")
			require.NoError(t, err)
			got, err := apart.Ask(t.Context(), d, ramp.ID, "x := input.action.to; y := \"<\"")
			require.NoError(t, err)
			require.Equal(t, want, got)
			_, err = apart.Ask(t.Context(), d, ramp.ID, "nosuch(1)")
			require.ErrorContains(t, err, "nosuch")
			read, err := apart.ReadMasked(t.Context(), d, "***", []string{"/input/action/to"})
			require.NoError(t, err)
			require.False(t, read)
			require.True(t, apart.ClauseLooksAt("rampart.rollout", "nowhere:1", "git"))
			require.Equal(t, lint.Check(cfg), Check(t.Context(), cfg, self()))
		})
	}
}

// The default library needs no process, whatever data it is given.
func TestTheLibraryStaysHere(t *testing.T) {
	e := compile(t, policy.Config{Data: []parse.DataFile{{Path: "policies/d.yaml", Content: "x: 1\n"}}, Floor: []policy.Layer{{Name: "own"}}})
	require.Empty(t, e.children)
}

// Policies that take their process with them are held, and what remains has its say. That is the bot's own, which may
// want a version turned back, and the library. They are not asked again for a while, then again.
func TestOverrun(t *testing.T) {
	back := policy.Layer{Name: "own", Modules: []parse.Module{{Path: "own/back.rego",
		Source: policytest.Rules("rollback contains {\"rule\": \"own.back\", \"msg\": \"it fails\"} if input.action.kind == \"Ramp\"\n")}}}
	hostile := policytest.Rules("deny contains {\"rule\": \"x\", \"msg\": \"m\"} if forever\n" + endless)
	e := compile(t, policy.Config{Modules: policytest.Modules(hostile), Floor: []policy.Layer{back}, Bounds: policy.Bounds{Timeout: 500 * time.Millisecond}})
	require.Empty(t, e.Problems())
	for range 2 {
		start := time.Now()
		v := e.Judge(t.Context(), policytest.Snapshot(t), proposal)
		require.Less(t, time.Since(start), 30*time.Second)
		require.Equal(t, rollout.RollbackEffect, v.Of(ramp.ID).Effect)
		require.Equal(t, []string{"own.back", "policy.timeout"}, rulesOf(v.Of(ramp.ID)))
		f := v.Of(ramp.ID).Findings[1]
		require.Equal(t, "the policies of rampart.rollout took longer than 500ms and could not be stopped", f.Message)
		require.Equal(t, "policies/p1.rego:3", f.Location)
		require.Equal(t, rollout.HoldEffect, v.Spec.Effect)
		require.Equal(t, rollout.Allow, v.Of(reset.ID).Effect)
		require.Equal(t, e.Digest(), v.PolicyDigest)
		require.False(t, e.children[0].process.Running())
	}
	x, err := e.Explain(t.Context(), document(t), ramp.ID)
	require.NoError(t, err)
	require.Contains(t, x.Incomplete, "could not be stopped")
	require.Equal(t, rollout.RollbackEffect, x.Verdict.Effect)
	require.Equal(t, e.Digest(), x.PolicyDigest)
	require.Equal(t, "policy.timeout", x.Others[0].Rule)
	_, err = e.Ask(t.Context(), document(t), ramp.ID, "1")
	require.ErrorContains(t, err, "could not be stopped (policies/p1.rego:3)")
	_, err = e.ReadMasked(t.Context(), document(t), "***", []string{"/input/action/to"})
	require.ErrorContains(t, err, "could not be stopped")
	require.True(t, e.ClauseLooksAt("rampart.rollout", "policies/p1.rego:3", "git"), "it can't be told")

	e.asked.until = time.Now()
	_, err = e.Ask(t.Context(), document(t), ramp.ID, "1")
	require.NoError(t, err, "asked again")
}

// While policies are asked what never ends, what they say of themselves is there, and so are other policies.
func TestOthersDoNotWait(t *testing.T) {
	hostile := compile(t, policy.Config{Modules: policytest.Modules(policytest.Rules("deny contains {\"rule\": \"x\", \"msg\": \"m\"} if forever\n" + endless)), Bounds: policy.Bounds{Timeout: 5 * time.Second}})
	other := compile(t, policy.Config{Modules: policytest.Modules(told)})
	held := make(chan rollout.Verdicts, 1)
	s := policytest.Snapshot(t)
	go func() { held <- hostile.Judge(t.Context(), s, proposal) }()
	for hostile.children[0].mu.TryLock() { // until it is asked
		hostile.children[0].mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	require.NotEmpty(t, hostile.Digest())
	require.False(t, hostile.Looks().At("git"))
	require.Empty(t, hostile.Problems())
	require.Equal(t, []string{"acme.told"}, rulesOf(other.Judge(t.Context(), policytest.Snapshot(t), proposal).Of(ramp.ID)))
	_, err := hostile.Ask(t.Context(), document(t), ramp.ID, "1")
	require.NoError(t, err, "people have a process of their own")
	select {
	case <-held:
		t.Fatal("it ended before the others were asked")
	default:
	}
	require.Equal(t, rollout.HoldEffect, (<-held).Of(ramp.ID).Effect)
}

// Many ask at once, and are answered one after the other.
func TestManyAsk(t *testing.T) {
	e := compile(t, policy.Config{Modules: policytest.Modules(told)})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			v := e.Judge(t.Context(), policytest.Snapshot(t), proposal)
			assert.Equal(t, []string{"acme.told"}, rulesOf(v.Of(ramp.ID)))
		})
	}
	all.Wait()
}

// Patterns of data that could take for ever to match do not, in the library itself.
func TestHostilePatterns(t *testing.T) {
	stars := strings.Repeat("*a", 60) + "*b"
	e := compile(t, policy.Config{Data: []parse.DataFile{{Path: "policies/d.yaml", Content: fmt.Sprintf(
		"rampart: {config: {spec: {images: {mutableTags: [%[1]q, \"{a*,*}{a*,*}{a*,*}{a*,*}\"]}, safety: {gateEnvironments: [%[1]q]}}}}\n", stars)}}})
	require.Empty(t, e.children)
	s := policytest.Snapshot(t)
	s.Spec = policytest.Spec(t, "registry.example/checkout:"+strings.Repeat("a", 100))
	s.Environment.Name = strings.Repeat("a", 60)
	start := time.Now()
	require.Equal(t, rollout.Allow, e.Judge(t.Context(), s, proposal).Of(reset.ID).Effect)
	require.Less(t, time.Since(start), 20*time.Second)
}

// Each question that a person asks has an end.
func TestQuestionsEnd(t *testing.T) {
	ask := map[string]func(*Engine) error{
		"expression": func(e *Engine) error {
			_, err := e.Ask(t.Context(), document(t), ramp.ID, "data.rampart.rollout.forever")
			return err
		},
		"masks": func(e *Engine) error {
			_, err := e.ReadMasked(t.Context(), document(t), "***", []string{"/input/action/to"})
			return err
		},
	}
	for name, f := range ask {
		t.Run(name, func(t *testing.T) {
			e := compile(t, policy.Config{Modules: policytest.Modules(policytest.Rules("deny contains {\"rule\": \"x\", \"msg\": \"m\"} if forever\n" + endless)),
				Bounds: policy.Bounds{Timeout: 100 * time.Millisecond}})
			require.ErrorContains(t, f(e), "could not be stopped")
		})
	}
}

// What cannot be compiled in its time is broken, and tried again later; the library and the bot's own go on.
func TestCompilingTooLong(t *testing.T) {
	deep := policytest.Deny("	x := " + strings.Repeat("[x | x := ", 16) + "1" + strings.Repeat("]", 16))
	e := within(t, 500*time.Millisecond, policy.Config{Modules: policytest.Modules(deep)})
	want := parse.Problem{Path: "policies/p1.rego", Message: "reading and compiling the policies takes longer than 500ms"}
	require.Contains(t, e.Problems(), want)
	require.NotEqual(t, policy.Compile(policy.Config{}).Digest(), e.Digest())
	v := e.Judge(t.Context(), policytest.Snapshot(t), proposal)
	require.Equal(t, []string{"policy.broken"}, rulesOf(v.Of(ramp.ID)))
	require.Equal(t, want.Message, v.Of(ramp.ID).Findings[0].Message)
	require.Equal(t, rollout.Allow, v.Of(reset.ID).Effect)
	require.Equal(t, e.Digest(), v.PolicyDigest)
	require.NotEqual(t, within(t, 500*time.Millisecond, policy.Config{Modules: policytest.Modules(deep + "\n# edited\n")}).Digest(), e.Digest())

	require.WithinDuration(t, time.Now().Add(suspension), e.children[0].until, suspension/2, "it may have been the machine")
	e.children[0].until = time.Time{}
	require.Equal(t, []string{"policy.broken"}, rulesOf(e.Judge(t.Context(), policytest.Snapshot(t), proposal).Of(ramp.ID)))
	require.WithinDuration(t, time.Now().Add(2*suspension), e.children[0].until, suspension/2, "less and less often")

	for _, c := range e.children { // as if what was too much for it were gone
		c.cfg.Modules = policytest.Modules(told)
	}
	require.Equal(t, []string{"policy.broken"}, rulesOf(e.Judge(t.Context(), policytest.Snapshot(t), proposal).Of(ramp.ID)), "not yet")
	e.children[0].until, e.children[0].compile = time.Now(), time.Minute
	ended, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond) // a process takes longer to start
	defer cancel()
	require.Equal(t, rollout.HoldEffect, e.Judge(ended, policytest.Snapshot(t), proposal).Of(ramp.ID).Effect)
	require.Equal(t, []string{"policy.broken"}, rulesOf(e.Judge(t.Context(), policytest.Snapshot(t), proposal).Of(ramp.ID)), "the input was made for policies that look at nothing")
	require.Empty(t, e.Problems())
	require.Equal(t, []string{"acme.told"}, rulesOf(e.Judge(t.Context(), policytest.Snapshot(t), proposal).Of(ramp.ID)))
}

// A program that cannot be started holds what is raised.
func TestNoProcess(t *testing.T) {
	e := Compile(policy.Config{Modules: policytest.Modules(told)}, func() *confined.Process { return &confined.Process{Path: "/nothing/here"} })
	v := e.Judge(t.Context(), policytest.Snapshot(t), proposal)
	require.Equal(t, rollout.HoldEffect, v.Of(ramp.ID).Effect)
	require.Contains(t, v.Of(ramp.ID).Findings[0].Message, "/nothing/here")
	require.Equal(t, rollout.Allow, v.Of(reset.ID).Effect)
}

// Who waits may stop waiting: nothing is let through, and policies are not to blame.
func TestCancelledJudgingBlamesNoPolicy(t *testing.T) {
	e := compile(t, policy.Config{Modules: policytest.Modules(policytest.Rules("deny contains {\"rule\": \"x\", \"msg\": \"m\"} if forever\n" + endless))})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	v := e.Judge(ctx, policytest.Snapshot(t), proposal)
	require.Equal(t, rollout.HoldEffect, v.Of(ramp.ID).Effect)
	require.Equal(t, rollout.Allow, v.Of(reset.ID).Effect)
	require.Contains(t, rulesOf(v.Of(ramp.ID)), "policy.cancelled")
	require.Nil(t, e.children[0].failed)
	_, err := e.Explain(ctx, document(t), ramp.ID)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = e.Ask(ctx, document(t), ramp.ID, "1")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// What cannot be written as a document is held, as in this process.
func TestInputThatCannotBeMade(t *testing.T) {
	s := policytest.Snapshot(t)
	s.Facts["bad"] = rollout.Fact{Value: json.RawMessage("{")}
	v := compile(t, policy.Config{Modules: policytest.Modules(told)}).Judge(t.Context(), s, proposal)
	require.Equal(t, "policy.input", v.Of(ramp.ID).Findings[0].Rule)
	require.Equal(t, rollout.Allow, v.Of(reset.ID).Effect)
}

// A process that is asked nothing ends, and is begun again when it is asked.
func TestIdleProcessEndsAndBeginsAgain(t *testing.T) {
	e := compile(t, policy.Config{Modules: policytest.Modules(told)})
	c := e.children[0]
	require.True(t, c.process.Running())
	c.mu.Lock()
	c.idle.Reset(0)
	c.mu.Unlock()
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.process.Running()
	}, time.Minute, time.Millisecond)
	require.Equal(t, []string{"acme.told"}, rulesOf(e.Judge(t.Context(), policytest.Snapshot(t), proposal).Of(ramp.ID)))
}

// Tests and checks that take too much end, and say so.
func TestHostileChecks(t *testing.T) {
	testneed.Plain(t) // the race detector's memory has no bounds
	cfg := policy.Config{Modules: []parse.Module{{Path: "policies/a.rego", Source: told},
		{Path: "policies/a_test.rego", Source: "package acme_test\n\ntest_ok if 1 == 1\n\ntest_no if 1 == 2\n"}}}
	report, err := RunTests(t.Context(), cfg, nil, self())
	require.NoError(t, err)
	require.Len(t, report.Results, 2)
	report, err = RunTests(t.Context(), cfg, regexp.MustCompile("test_ok"), self())
	require.NoError(t, err)
	require.Len(t, report.Results, 1)

	many := "x := [{\"a\": y, \"b\": i} | y := numbers.range(1, 100000); some i in numbers.range(1, 100000)]"
	cfg.Modules[1].Source = "package acme_test\n\ntest_memory if {\n\t" + many + "\n\tcount(json.marshal([x, x])) == 1\n}\n"
	report, err = RunTests(t.Context(), cfg, nil, self())
	require.NoError(t, err)
	require.Len(t, report.Problems, 1)
	require.Contains(t, report.Problems[0].Message, "testing the policies needed more than 384 MiB of memory")
	require.Equal(t, "policies/a.rego and 1 more", report.Problems[0].Path)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = RunTests(ctx, cfg, nil, self())
	require.ErrorIs(t, err, context.Canceled)
	cfg.Modules[1].Source = "package a\n\nx := " + strings.Repeat("[", 400_000)
	require.NotEmpty(t, Check(t.Context(), cfg, self()))
}

// FuzzPolicy is any text as a policy: it never panics, never stops what takes traffic back, and raises nothing where
// anything is broken.
func FuzzPolicy(f *testing.F) {
	f.Add(told)
	f.Add(policytest.Rules(`rollback contains {"rule": "a", "msg": sprintf("%v", [input])} if walk(input, [_, "v3"])`))
	f.Add(policytest.Rules("deny contains {\"rule\": \"x\", \"msg\": \"m\"} if forever\n" + endless))
	f.Add("package rampart.rollout\n\ndeny := 1\n")
	f.Fuzz(func(t *testing.T, source string) {
		e := within(t, 5*time.Second, policy.Config{Modules: policytest.Modules(source), Bounds: policy.Bounds{Timeout: 200 * time.Millisecond}})
		v := e.Judge(t.Context(), policytest.Snapshot(t), proposal)
		require.Equal(t, rollout.Allow, v.Of(reset.ID).Effect)
		if len(e.Problems()) > 0 {
			require.GreaterOrEqual(t, v.Of(ramp.ID).Effect.Strictness(), rollout.HoldEffect.Strictness())
		}
	})
}

// BenchmarkJudge is a decision about a spec and four actions, by the library and a rule of a repository.
func BenchmarkJudge(b *testing.B) {
	e := compile(b, policy.Config{Modules: policytest.Modules(told)})
	s, p := policytest.Snapshot(b), policytest.Proposal()
	for b.Loop() {
		e.Judge(b.Context(), s, p)
	}
}
