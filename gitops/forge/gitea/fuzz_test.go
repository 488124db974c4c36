package gitea

import (
	"testing"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/forgetest"
)

// FuzzAnswers: see forgetest.FuzzAnswers.
func FuzzAnswers(f *testing.F) {
	forgetest.FuzzAnswers(f, func(c forge.Config) (forge.Forge, error) { return New(c) }, forge.KindGitea, `{"id":1,"login":"bot"}
---
{"number":7,"title":"t","state":"closed","merged":true,"merge_commit_sha":"a","user":{"id":1,"login":"bot"},"head":{"ref":"rampart/prod/shop/checkout","sha":"b","repo_id":3},"base":{"ref":"main","repo_id":3},"merged_by":{"id":1,"login":"bot"},"labels":[{"name":"x"}],"updated_at":"2026-01-01T00:00:00Z"}
---
[{"id":1,"state":"APPROVED","user":{"id":2,"login":"sam"},"commit_id":"b","submitted_at":"2026-01-01T00:00:00Z"}]`,
		`{"id":1,"login":"bot"}
---
[{"number":7,"title":"t","state":"closed","merged":true,"merge_commit_sha":"a","user":{"id":1,"login":"bot"},"head":{"ref":"rampart/prod/shop/checkout","sha":"b","repo_id":3},"base":{"ref":"main","repo_id":3},"merged_by":{"id":1,"login":"bot"},"labels":[{"name":"x"}],"updated_at":"2026-01-01T00:00:00Z"},{"number":7,"title":"t","state":"closed","merged":true,"merge_commit_sha":"a","user":{"id":1,"login":"bot"},"head":{"ref":"rampart/prod/shop/checkout","sha":"b","repo_id":3},"base":{"ref":"main","repo_id":3},"merged_by":{"id":1,"login":"bot"},"labels":[{"name":"x"}],"updated_at":"2026-01-01T00:00:00Z"}]
---
[{"id":1,"state":"APPROVED","user":{"id":2,"login":"sam"},"commit_id":"b","submitted_at":"2026-01-01T00:00:00Z"}]`, `{"id":1,"login":"bot"}
---
[null]`, `{"id":1,"login":"bot"}
---
null`)
}
