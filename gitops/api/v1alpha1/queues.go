package v1alpha1

import (
	"strings"
	"unicode"
)

// QueueType is the kind of tasks on a recorded task queue.
// +kubebuilder:validation:Enum=Workflow;Activity;Nexus
type QueueType string

// The types of task queues.
const (
	WorkflowQueue QueueType = "Workflow"
	ActivityQueue QueueType = "Activity"
	NexusQueue    QueueType = "Nexus"
)

// RecordedQueue is one task queue of a version.
type RecordedQueue struct {
	// Name of the task queue.
	Name string `json:"name"`
	// Type of its tasks.
	Type QueueType `json:"type"`
}

// String is type and name, as people write them.
func (q RecordedQueue) String() string {
	return strings.ToLower(string(q.Type)) + " task queue " + q.Name
}

// CanBeRecorded reports whether a record with the name can be read again: it is the worker's.
func (q RecordedQueue) CanBeRecorded() bool {
	return q.Name != "" && len(q.Name) <= longestText && !strings.ContainsFunc(q.Name, unicode.IsControl)
}

// recordedQueues checks task queues that a person may have edited.
func (v *validator) recordedQueues(list *node) {
	for _, n := range list.items() {
		v.require(n, "type")
		v.printable(v.text(n, "name"))
	}
}
