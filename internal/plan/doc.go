// Package plan decides. Look makes the View of a snapshot: its Ask says what more to read, its Propose what the rollout
// rules would do next, and its Resolve turns that and policy's verdicts into what is done now. Never checks a plan
// against what must not happen, whatever rules and policy say; it makes no view.
//
// All functions are pure: they read no clock, no file and no network, take values and return values, and give the
// same answer for the same input. They may be called concurrently.
//
// The rules are tables: targetRows for the version that the spec asks for (target.go), otherRows for the others
// (others.go). From the top, the first row that fits decides.
package plan
