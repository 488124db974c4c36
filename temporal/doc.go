// Package temporal reads worker deployments from a Temporal server and carries out what was decided about them:
// routing, gates, marks and the deletion of versions. It decides nothing itself, beyond refusing what differs from what
// was decided.
//
// It speaks gRPC directly: the SDK's client drops fields (drainage times, revision, conflict token) and retries out of
// sight. Every call has a deadline, waits for its namespace's budget, and is tried again only where this says so.
//
// Concurrency: a Pool is safe for concurrent use. It keeps one connection for each address and credentials, and one
// budget for each address and Temporal namespace. Two calls that move the routing of the same worker deployment are
// kept apart by the server's conflict token, not by this package.
//
// Invariants:
//   - What could not be read is a Problem or "not known", never a zero, an empty list or an error that hides the rest.
//   - Nothing is raised unless the routing is what the decision was made on, times and revision included.
//   - Lowering goes on when someone moved the routing meanwhile, as long as it still takes traffic from what it was to
//     take it from.
//   - What became of a refused or lost call follows from reading the state again, never from the error's text.
//   - A version is never deleted with its drainage skipped, and nothing is ever routed with AllowNoPollers.
//   - The bot's credentials go only to addresses that the bot's own configuration names: a connection that only the
//     repository describes is dialed without any.
//   - Every change of the server goes through write, which announces it as a Site.
package temporal
