package github

import (
	"testing"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/forgetest"
)

// FuzzAnswers: see forgetest.FuzzAnswers.
func FuzzAnswers(f *testing.F) {
	forgetest.FuzzAnswers(f, func(c forge.Config) (forge.Forge, error) { return New(c) }, forge.KindGitHub, `{"id":1,"login":"bot"}
---
{"number":7,"title":"t","state":"closed","merged":true,"merged_at":"2026-01-01T00:00:00Z","merge_commit_sha":"a","user":{"id":1,"login":"bot"},"head":{"ref":"rampart/prod/shop/checkout","sha":"b","repo":{"id":3,"full_name":"acme/workers"}},"base":{"ref":"main","repo":{"id":3,"full_name":"acme/workers"}},"labels":[{"name":"x"}]}
---
[{"id":1,"state":"APPROVED","user":{"id":2,"login":"sam"},"commit_id":"b"}]`,
		`{"id":1,"login":"bot"}
---
[{"number":7,"title":"t","state":"closed","merged":true,"merged_at":"2026-01-01T00:00:00Z","merge_commit_sha":"a","user":{"id":1,"login":"bot"},"head":{"ref":"rampart/prod/shop/checkout","sha":"b","repo":{"id":3,"full_name":"acme/workers"}},"base":{"ref":"main","repo":{"id":3,"full_name":"acme/workers"}},"labels":[{"name":"x"}]},{"number":7,"title":"t","state":"closed","merged":true,"merged_at":"2026-01-01T00:00:00Z","merge_commit_sha":"a","user":{"id":1,"login":"bot"},"head":{"ref":"rampart/prod/shop/checkout","sha":"b","repo":{"id":3,"full_name":"acme/workers"}},"base":{"ref":"main","repo":{"id":3,"full_name":"acme/workers"}},"labels":[{"name":"x"}]}]
---
[{"id":1,"state":"APPROVED","user":{"id":2,"login":"sam"},"commit_id":"b"}]`, `{"id":1,"login":"bot"}
---
[null]`, `{"id":1,"login":"bot"}
---
null`)
}
