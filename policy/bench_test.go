package policy

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/policytest"
	library "github.com/rampart-gitops/rampart/rego"
)

// BenchmarkJudge is one decision: the spec and four actions.
func BenchmarkJudge(b *testing.B) {
	for name, e := range map[string]*Engine{"library": Compile(Config{}), "ten repository rules": Compile(Config{Modules: tenRules()})} {
		b.Run(name, func(b *testing.B) {
			s, p := snapshot(b), proposal()
			b.ReportAllocs()
			defer cpu(b)()
			for b.Loop() {
				v := e.Judge(context.Background(), s, p)
				if v.Of(p.Actions[0].ID).Effect != rollout.Allow || v.Of(p.Actions[3].ID).Effect != rollout.Allow {
					b.Fatal("not allowed", v)
				}
			}
		})
	}
}

// BenchmarkPlainEval is OPA alone, by its own front door, on the same queries and inputs as BenchmarkJudge's: the spec
// and four actions.
func BenchmarkPlainEval(b *testing.B) {
	for name, cfg := range map[string]Config{"library": {}, "ten repository rules": {Modules: tenRules()}} {
		b.Run(name, func(b *testing.B) {
			asks := plainAsks(b, cfg, proposal())
			b.ReportAllocs()
			defer cpu(b)()
			for b.Loop() {
				for _, ask := range asks {
					if _, err := ask.query.Eval(context.Background(), rego.EvalParsedInput(ask.input), rego.EvalTime(now)); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkBesidePlain does both in turn on one core, and gives the median of each and of their ratio. That is what
// judging takes beside what OPA takes for it, for one action (the spec and a ramp), for a proposal (the spec and four
// actions), and for one question to each package, with ten rules of a repository. A rollout's spec is the same in all
// its cycles but the first: another spec each time is what that one takes.
func BenchmarkBesidePlain(b *testing.B) {
	one, four := proposal(ramp()), proposal()
	zero := int32(0)
	each := proposal(ramp(), rollout.Action{ID: "ScaleDown/v1", Kind: rollout.ScaleDown, BuildID: "v1", Replicas: &zero, Row: "scale-down"},
		rollout.Action{ID: "Drift/Routing", Kind: rollout.DriftAction, Drift: &rollout.Drift{Kind: rollout.DriftRouting, Direction: rollout.DriftLower}})
	for _, bm := range []struct {
		name     string
		proposal rollout.Proposal
		specs    int
	}{{"one action", one, 1}, {"one action, another spec", one, 2}, {"four actions", four, 1}, {"four actions, another spec", four, 2},
		{"one of each package", each, 1}, {"one of each package, another spec", each, 2}} {
		b.Run(bm.name, func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			cfg := Config{Modules: tenRules()}
			e, asks := Compile(cfg), plainAsks(b, cfg, bm.proposal)
			worlds := make([]rollout.Snapshot, bm.specs)
			for i := range worlds {
				worlds[i] = snapshot(b)
				worlds[i].Spec = spec(b, fmt.Sprintf("registry.example/checkout:3.0.%d", i))
			}
			var judged, plain, ratio []float64
			for n := 0; b.Loop(); n++ {
				start := time.Now()
				if v := e.Judge(context.Background(), worlds[n%len(worlds)], bm.proposal); v.Of(bm.proposal.Actions[0].ID).Effect != rollout.Allow {
					b.Fatal("not allowed", v)
				}
				between := time.Now()
				for _, ask := range asks {
					if _, err := ask.query.Eval(context.Background(), rego.EvalParsedInput(ask.input), rego.EvalTime(now)); err != nil {
						b.Fatal(err)
					}
				}
				judged = append(judged, float64(between.Sub(start)))
				plain = append(plain, float64(time.Since(between)))
				ratio = append(ratio, judged[len(judged)-1]/plain[len(plain)-1])
			}
			b.ReportMetric(median(judged), "judge-p50-ns")
			b.ReportMetric(median(plain), "plain-p50-ns")
			b.ReportMetric(median(ratio), "ratio-p50")
		})
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

type plainAsk struct {
	query rego.PreparedEvalQuery
	input ast.Value
}

// plainAsks prepares the queries that Judge makes of a proposal, as a program that embeds OPA would.
func plainAsks(b *testing.B, cfg Config, p rollout.Proposal) []plainAsk {
	e := Compile(cfg)
	d, err := NewDocument(snapshot(b), p)
	if err != nil {
		b.Fatal(err)
	}
	loaded, _ := parse.LoadData(nil)
	var parsed []*ast.Module
	for _, m := range append(library.Modules(), cfg.Modules...) {
		p, err := parse.Rego(m)
		if err != nil {
			b.Fatal(err)
		}
		parsed = append(parsed, p)
	}
	compiler := parse.NewCompiler(loaded)
	if err := parse.Compile(compiler, parsed); err != nil {
		b.Fatal(err)
	}
	store := inmem.NewFromObjectWithOpts(loaded, inmem.OptReturnASTValuesOnRead(true))
	ask := func(pkg string, input ast.Value) plainAsk {
		q, err := rego.New(rego.ParsedQuery(e.books[0].all.packages[pkg].whole.body), rego.Compiler(compiler), rego.Store(store),
			rego.StrictBuiltinErrors(true), rego.SetRegoVersion(ast.RegoV1)).PrepareForEval(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		return plainAsk{q, input}
	}
	out := []plainAsk{ask(parse.PackageSpec, d.SpecInput())}
	for i := range d.actions {
		out = append(out, ask(parse.Asked(d.actions[i].kind), d.about(&d.actions[i])))
	}
	return out
}

func BenchmarkInput(b *testing.B) {
	s, p := snapshot(b), proposal()
	b.ReportAllocs()
	defer cpu(b)()
	for b.Loop() {
		if _, err := NewDocument(s, p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	defer cpu(b)()
	for b.Loop() {
		Compile(Config{Modules: tenRules()})
	}
}

// cpu reports the processor time of an operation, which a busy machine does not change.
func cpu(b *testing.B) func() {
	before := used(b)
	return func() { b.ReportMetric(float64(used(b)-before)/float64(b.N), "cpu-ns/op") }
}

func used(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// tenRules is a repository with ten rules that look and do not fire.
func tenRules() []parse.Module {
	var sources []string
	for i := range 10 {
		sources = append(sources, fmt.Sprintf(`package rampart.rollout

deny contains {"rule": "acme.r%d", "msg": "no gold on Fridays"} if {
	input.action.kind == "Ramp"
	input.deployment.metadata.labels.tier == "gold"
	time.weekday(time.now_ns()) == "Friday"
	input.action.to > %d
}
`, i, i))
	}
	return policytest.Modules(sources...)
}
