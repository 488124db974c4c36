package lint

import (
	"testing"

	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/policytest"
)

// BenchmarkCheck checks two policies with the default library.
func BenchmarkCheck(b *testing.B) {
	cfg := policy.Config{Modules: policytest.Modules(
		"package rampart.rollout\n\ndeny contains {\"rule\": \"shop.x\", \"msg\": \"no\"} if input.action.to > data.shop.max\n",
		"package rampart.spec\n\nwarn contains {\"rule\": \"shop.y\", \"msg\": \"no\"} if not input.deployment.spec.replicas\n",
	), Data: []parse.DataFile{{Path: "data.yaml", Content: "shop: {max: 3}\n"}}}
	b.ReportAllocs()
	for b.Loop() {
		if problems := Check(cfg); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}
