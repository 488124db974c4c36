package rollout

import (
	"errors"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// ErrMoved is what a commit ends with when its branch is not any more what was read: read again, and decide again.
var ErrMoved = errors.New("the branch moved")

// ErrStale is what a routing call ends with when the routing is not any more what it was decided on: the plan is void.
var ErrStale = errors.New("the routing moved")

// World is what one commit of a repository says: its environments, and what is wrong with its files.
type World struct {
	Git          GitContext         `json:"git"`
	Environments []EnvironmentWorld `json:"environments"`
	Problems     []v1alpha1.Problem `json:"problems,omitempty"`
}

// EnvironmentWorld is one environment at one commit.
type EnvironmentWorld struct {
	Environment v1alpha1.Environment `json:"environment"`
	// Base is the commit of the output's branch that Records were read from, and that a commit has to follow; "" if the
	// branch does not exist yet.
	Base string `json:"base,omitempty"`
	// Deployments sorted by name: snapshots without an observation and without the time.
	Deployments []Snapshot `json:"deployments"`
	// Policies and Data of the environment, sorted by path.
	Policies []TextFile `json:"policies,omitempty"`
	Data     []TextFile `json:"data,omitempty"`
	// PolicyProblems say what is wrong with Policies and Data as a whole, such as a file that is named and not there. They hold what
	// policies can hold.
	PolicyProblems []v1alpha1.Problem `json:"policyProblems,omitempty"`
	// Roots are the folders of records below the output's path, sorted: what its kustomization.yaml lists.
	Roots []string `json:"roots,omitempty"`
	// RootFile is the kustomization.yaml of the output as it is.
	RootFile File `json:"rootFile"`
	// Problems of the environment's files; a file that cannot be read says so here, and holds what depends on it.
	Problems []v1alpha1.Problem `json:"problems,omitempty"`
}

// TextFile is a file by its path from the repository's root.
type TextFile struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// Commit is one commit of one environment.
type Commit struct {
	Environment v1alpha1.Environment `json:"environment"`
	// Base is EnvironmentWorld.Base: the commit that has to be the branch's tip still.
	Base    string       `json:"base"`
	Changes []FileChange `json:"changes"`
	Message string       `json:"message"`
}
