// Package decisions says what a decision is: one judgement of one worker deployment's proposal, with all that is needed to
// judge it again. It gives decisions as JSON lines with the field names of OPA's decision log, masks what may be secret in
// them, and packs them into segments for a Git ref.
//
// A segment holds the decisions of one flush. It is coded against the segments before it in its epoch: an epoch begins with
// an empty State (a calendar month, UTC, unless the state grows beyond its bounds first), so that reading never goes back
// further than the epoch's first segment. Segments are exact, deterministic, versioned by their first byte, and bounded when
// they are read: their bytes may come from anybody who can push to the ref.
//
// Whatever changes a prediction changes the coding: the old one is then kept beside the new one, under its version.
// TestOldSegments finds out.
//
// Nothing here is safe for concurrent use, but for Masker, Decision's methods and the functions that take and return values.
package decisions
