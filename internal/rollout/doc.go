// Package rollout is the vocabulary that the steps of a cycle share. It names what was read (Snapshot, Record,
// Observation), what the rollout rules propose (Proposal, Action), what policy says of it (Verdicts) and what is done
// now (Plan).
//
// Everything here is a value that survives JSON and back: no context, no clock, no I/O. A fact that could not be
// read is data, never an error and never a zero that looks like an answer: the zero value of Answer, Count and
// Pollers means "not known". Values are not changed after they were handed on, so they may be shared.
package rollout
