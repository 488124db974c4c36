// Package preview says what a change of a repository would do to a worker deployment once it is merged. It says which
// version its spec asks for then, what is rendered, what policies say, and how the rollout goes.
//
// It is pure: everything follows from two snapshots (before and after the merge), the policies, and the time. Of
// Temporal it knows what the record says; the rest is simulated. What goes by anything else is listed as unknown, never
// as passed. Functions may be called from several goroutines.
package preview
