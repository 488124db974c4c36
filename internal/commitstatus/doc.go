// Package commitstatus is what the bot says on commits, and what it reads there that others said. A [Writer] sets the
// status of the commit that asked for something: pending, success or failure of what became of it. A [Reader] reads
// statuses of others on the commits that hold a version, as facts for policies.
//
// # Concurrency
//
// Both are told and asked by the goroutine that runs cycles, and talk to the forge in goroutines of their own: a forge
// that is away or slow keeps no cycle waiting for longer than Config.Patience of a Reader, and then not again before it
// answered. What they keep in memory saves requests. A Writer that begins anew reads what is on the forge before it
// writes.
package commitstatus
