// Package auditlog records what the bot decided and why: as JSON lines, and on Git refs, one for each month.
//
// A decision is recorded when it differs from the last one recorded of its worker deployment, or when something was
// carried out. A hold whose counts move is not recorded again.
//
// Log never keeps a cycle waiting. It writes each decision to a spool file before anything else, so that a bot that is
// killed goes on from there, and pushes what waits in batches.
//
// Ref reads and writes segments: files of zstd-compressed JSON lines, with the field names of OPA's decision log. A
// line is a whole decision, or a JSON merge patch (RFC 7386) to the line before it about the same worker deployment.
// The tree of a month's ref lists its segments. Each push adds a small segment; every sixteenth merges the small ones.
// The commit has no parent, so that the server may drop what was merged.
package auditlog
