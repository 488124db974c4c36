package policy

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy/policytest"
)

const kept = "package rampart.spec\n\nimport rego.v1\n\nwarn contains {\"rule\": \"acme.spec\", \"msg\": %s} if %s\n"

// What is found about a spec is remembered, and found anew when anything that its rules see is another.
func TestASpecIsJudgedAgainWhenItChanges(t *testing.T) {
	e := of(fmt.Sprintf(kept, `sprintf("%v %v %v %v", [input.environment.name, input.deployment.metadata.labels.tier, input.git.commit, count(input.waivers)])`, "true"))
	s := snapshot(t)
	s.Git = rollout.GitContext{Branch: "main", Commit: "aaaa"}
	s.Waivers = []v1alpha1.Waiver{waiver("a", "acme.none")}
	labelled := func(s rollout.Snapshot, tier string) rollout.Snapshot {
		spec := *s.Spec
		spec.Metadata.Labels = map[string]string{"tier": tier}
		s.Spec = &spec
		return s
	}
	said := func(s rollout.Snapshot) string {
		for _, f := range e.Judge(t.Context(), s, proposal()).Spec.Findings {
			if f.Rule == "acme.spec" {
				return f.Message
			}
		}
		return ""
	}
	s = labelled(s, "gold")
	env := s.Environment.Name
	require.Equal(t, env+" gold aaaa 1", said(s))
	require.Equal(t, 1, e.books[0].kept.of.Len())
	require.Equal(t, env+" gold aaaa 1", said(s), "the same again")
	require.Equal(t, env+" silver aaaa 1", said(labelled(s, "silver")))
	require.Equal(t, env+" gold aaaa 1", said(s))
	s.Git.Commit = "bbbb"
	require.Equal(t, env+" gold bbbb 1", said(s))
	s.Waivers = append(s.Waivers, s.Waivers[0])
	require.Equal(t, env+" gold bbbb 2", said(s))
	s.Environment.Name = "dev"
	require.Equal(t, "dev gold bbbb 2", said(s))
	require.Equal(t, 2, e.books[0].kept.of.Len())
}

// A remembered finding is waived as long as its waiver is there, and not longer.
func TestAWaiverOfARememberedFindingExpires(t *testing.T) {
	e := Compile(Config{Modules: policytest.Modules("package rampart.spec\n\ndeny contains {\"rule\": \"acme.no\", \"msg\": \"no\"}\n"), Waivable: []string{"acme.*"}})
	s := snapshot(t)
	s.Waivers = []v1alpha1.Waiver{waiver("a", "acme.no")}
	require.Equal(t, rollout.Allow, e.Judge(t.Context(), s, rollout.Proposal{}).Spec.Effect)
	require.Equal(t, 1, e.books[0].kept.of.Len())
	s.Now = now.Add(2 * time.Hour)
	require.Equal(t, rollout.HoldEffect, e.Judge(t.Context(), s, rollout.Proposal{}).Spec.Effect)
	s.Now = now
	require.Equal(t, rollout.Allow, e.Judge(t.Context(), s, rollout.Proposal{}).Spec.Effect)
}

// What looks at the time is asked each time, wherever it looks.
func TestRulesAboutTimeAreAskedEachTime(t *testing.T) {
	for name, source := range map[string]string{
		"now":              `package rampart.spec` + "\n\n" + `warn contains {"rule": "acme.t", "msg": input.now}`,
		"the clock":        `package rampart.spec` + "\n\n" + `warn contains {"rule": "acme.t", "msg": sprintf("%d", [time.now_ns()])}`,
		"the whole input":  `package rampart.spec` + "\n\n" + `warn contains {"rule": "acme.t", "msg": object.get(input, "now", "")}`,
		"any part":         `package rampart.spec` + "\n\n" + `warn contains {"rule": "acme.t", "msg": v} if {` + "\n\t" + `some k` + "\n\t" + `v := input[k]` + "\n\t" + `is_string(v)` + "\n}",
		"in a helper":      `package rampart.spec` + "\n\n" + `warn contains {"rule": "acme.t", "msg": said}` + "\n\n" + `said := sprintf("%v", [clock(1)])` + "\n\n" + `clock(x) := time.now_ns() + x`,
		"in an else":       `package rampart.spec` + "\n\n" + `warn contains {"rule": "acme.t", "msg": said}` + "\n\n" + `said := "x" if 1 == 2 else := input.now`,
		"nested":           `package rampart.spec` + "\n\n" + `warn contains {"rule": "acme.t", "msg": m} if some m in {x | x := sprintf("%v", [[y | y := time.now_ns()]])}`,
		"in a with's rule": `package rampart.spec` + "\n\n" + `warn contains {"rule": "acme.t", "msg": m} if m := said with input.x as 1` + "\n\n" + `said := input.now`,
	} {
		t.Run(name, func(t *testing.T) {
			e := of(source + "\n")
			require.Empty(t, e.Problems())
			s := snapshot(t)
			first := e.Judge(t.Context(), s, rollout.Proposal{}).Spec
			require.NotEmpty(t, first.Findings)
			s.Now = s.Now.Add(time.Hour)
			require.NotEqual(t, first.Findings, e.Judge(t.Context(), s, rollout.Proposal{}).Spec.Findings)
			require.Zero(t, e.books[0].kept.of.Len())
		})
	}
}

// The library's own rules about specs look at no clock.
func TestTheLibrarysVerdictOnASpecIsKept(t *testing.T) {
	require.True(t, of().books[0].kept.timeless)
}

// A failure may be over the next time.
func TestFailuresAreNotRemembered(t *testing.T) {
	e := of(fmt.Sprintf(kept, `"x"`, `to_number(input.deployment.name) > 1`))
	require.Contains(t, e.Judge(t.Context(), snapshot(t), rollout.Proposal{}).Spec.Findings[0].Message, "to_number")
	require.Zero(t, e.books[0].kept.of.Len())
}

func TestFewSpecsAreRemembered(t *testing.T) {
	e := of()
	s := snapshot(t)
	for i := range mostKept + 3 {
		s.Deployment.Name = fmt.Sprintf("worker-%d", i)
		e.Judge(t.Context(), s, rollout.Proposal{})
	}
	require.Equal(t, mostKept, e.books[0].kept.of.Len())
}

// A bot judges for months: nothing of a decision is kept for the next, such as memory that two inputs share.
func TestJudgingKeepsNoMemory(t *testing.T) {
	testneed.Plain(t)
	e, s := of(), snapshot(t)
	judge := func(times int) uint64 {
		for range times {
			s.Now = s.Now.Add(time.Second)
			e.Judge(t.Context(), s, proposal())
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := judge(50)
	require.Less(t, judge(1500), before+8<<20)
}
