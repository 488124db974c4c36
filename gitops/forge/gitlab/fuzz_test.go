package gitlab

import (
	"testing"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/forgetest"
)

// FuzzAnswers: see forgetest.FuzzAnswers.
func FuzzAnswers(f *testing.F) {
	forgetest.FuzzAnswers(f, func(c forge.Config) (forge.Forge, error) { return New(c) }, forge.KindGitLab, `{"id":1,"username":"bot"}
---
{"id":3}
---
{"iid":7,"title":"t","state":"merged","source_project_id":3,"target_project_id":3,"source_branch":"rampart/prod/shop/checkout","target_branch":"main","sha":"b","merge_commit_sha":"a","author":{"id":1,"username":"bot"},"merge_user":{"id":1,"username":"bot"},"labels":["x"]}
---
{"approved_by":[{"user":{"id":2,"username":"sam"}}]}`,
		`{"id":1,"username":"bot"}
---
{"id":3}
---
[{"iid":7,"title":"t","state":"merged","source_project_id":3,"target_project_id":3,"source_branch":"rampart/prod/shop/checkout","target_branch":"main","sha":"b","merge_commit_sha":"a","author":{"id":1,"username":"bot"},"merge_user":{"id":1,"username":"bot"},"labels":["x"]},{"iid":7,"title":"t","state":"merged","source_project_id":3,"target_project_id":3,"source_branch":"rampart/prod/shop/checkout","target_branch":"main","sha":"b","merge_commit_sha":"a","author":{"id":1,"username":"bot"},"merge_user":{"id":1,"username":"bot"},"labels":["x"]}]
---
{"approved_by":[{"user":{"id":2,"username":"sam"}}]}`, `{"id":1,"username":"bot"}
---
{"id":3}
---
[null]`, `{"id":1,"username":"bot"}
---
{"id":3}
---
null`)
}
