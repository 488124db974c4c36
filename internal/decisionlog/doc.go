// Package decisionlog keeps what the bot decided: as JSON lines, at once, and on a Git ref, a flush at a time.
//
// A decision is kept when it is new: when for its worker deployment the actions, their verdicts and rules, the verdict on the spec, the
// policies, the target or the state are not what was kept last, or when something of it was carried out. A hold whose counts move is not new.
//
// Nothing here keeps a cycle waiting. Record compares and hands over; what writes runs beside it. What waits for the ref is in a spool file
// first, so that a bot that is killed loses nothing that it kept, and goes on from there. What fails is logged once, and tried again.
//
// A Log is used by the one goroutine that runs cycles; Close may be called by another.
package decisionlog
