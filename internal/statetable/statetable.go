// Package statetable reads the table of docs/cd.md that says what tools make of each state of a worker deployment.
// Tests hold it against the planner, which makes the states, and against the tools.
package statetable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// What the first column adds to a reason.
const (
	stalled = ", stalled"
	// judgedBad says that a policy wants the version turned back.
	judgedBad = ", judged bad"
)

// Row is a state, and what each tool makes of it.
type Row struct {
	// State is the first column: the reason of the conditions, and what else tools look at.
	State  string
	Reason rollout.Reason
	// Stalled is that condition; JudgedBad says that the verdict of the status's decision is rollback.
	Stalled, JudgedBad bool
	// Kubectl is for kubectl wait --for=condition=Ready, Helm for helm --wait: done, waits or fails.
	Kubectl, Helm string
	// ArgoCD and Guide are healths by our script, and by that of the in-cluster controller's guide.
	ArgoCD, Guide string
	// Flux is for a Kustomization with the health checks of rampart flux: done, waits or fails.
	Flux string
	// Commit is the state of the commit status.
	Commit string
}

var line = regexp.MustCompile("^\\| `([A-Za-z]+)`((?:, [a-z]+(?: [a-z]+)*)*) \\|")

// Rows are those of the table.
func Rows(t require.TestingT) []Row {
	rows, err := read()
	require.NoError(t, err)
	return rows
}

var read = sync.OnceValues(func() ([]Row, error) {
	file := filepath.Join("docs", "cd.md")
	page, err := os.ReadFile(file)
	for up := 0; errors.Is(err, fs.ErrNotExist) && up < 5; up++ { // tests run in the folder of their package
		file = filepath.Join("..", file)
		page, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, err
	}
	var out []Row
	for text := range strings.Lines(string(page)) {
		m := line.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(text), "|"), "|")
		if len(cells) != 8 {
			return nil, fmt.Errorf("%s: want 8 columns, got %d: %s", file, len(cells), text)
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		out = append(out, Row{State: m[1] + m[2], Reason: rollout.Reason(m[1]),
			Stalled:   strings.Contains(m[2], stalled),
			JudgedBad: strings.Contains(m[2], judgedBad), Kubectl: cells[2], Helm: cells[3], ArgoCD: cells[4],
			Guide: cells[5], Flux: cells[6], Commit: cells[7]})
	}
	return out, nil
})

// StateOf is the state of a status, as the first column has it.
func StateOf(status *v1alpha1.WorkerDeploymentStatus) string {
	state, _ := rollout.StateOf(status.Conditions)
	text := string(state.Reason)
	if state.Stalled {
		text += stalled
	}
	bad := status.Decision != nil && status.Decision.Verdict == string(rollout.RollbackEffect)
	if bad && state.Reason == rollout.PolicyHold {
		text += judgedBad
	}
	return text
}

// Status is one of a row's state, as the planner makes it.
func (r Row) Status(now v1alpha1.Time) *v1alpha1.WorkerDeploymentStatus {
	ready := r.Reason == rollout.RolloutComplete
	status := &v1alpha1.WorkerDeploymentStatus{Decision: &v1alpha1.Decision{Verdict: string(rollout.Allow)}}
	if r.JudgedBad {
		status.Decision.Verdict = string(rollout.RollbackEffect)
	}
	for _, c := range []struct {
		kind string
		is   bool
	}{
		{v1alpha1.ConditionReady, ready},
		{v1alpha1.ConditionProgressing, !ready && (!r.Stalled || r.Reason == rollout.WaitingForPollers)},
		{v1alpha1.ConditionReconciling, !ready && !r.Stalled},
		{v1alpha1.ConditionStalled, r.Stalled},
	} {
		condition := v1alpha1.Condition{Type: c.kind, Status: v1alpha1.False, Reason: string(r.Reason), Message: "why",
			LastTransitionTime: now}
		if c.is {
			condition.Status = v1alpha1.True
		}
		status.Conditions = append(status.Conditions, condition)
	}
	return status
}
