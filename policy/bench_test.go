package policy

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/rampart-gitops/rampart/internal/rollout"
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

// BenchmarkPlainEval is OPA alone on the same prepared query and input, to compare one action with.
func BenchmarkPlainEval(b *testing.B) {
	e := Compile(Config{})
	input, err := Input(snapshot(b), proposal(), ramp())
	if err != nil {
		b.Fatal(err)
	}
	q := e.all.packages[packageRollout].whole
	b.ReportAllocs()
	defer cpu(b)()
	for b.Loop() {
		if _, err := q.Eval(context.Background(), rego.EvalParsedInput(input), rego.EvalTime(now)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkInput(b *testing.B) {
	s, p := snapshot(b), proposal()
	var v ast.Value
	b.ReportAllocs()
	defer cpu(b)()
	for b.Loop() {
		d, err := newDocument(&s, &p)
		if err != nil {
			b.Fatal(err)
		}
		v = d.about(&p.Actions[0])
	}
	_ = v
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
func tenRules() []Module {
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
	return modules(sources...)
}
