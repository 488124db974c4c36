// Package git reads and writes a remote Git repository through a bare, disposable mirror on local
// disk: no work tree, no index, no loose objects.
//
// # What it does
//
// [Mirror.Fetch] asks the server for a branch's tip (one advertisement when nothing moved) and brings what is new.
// [Mirror.Commit], [Mirror.Tree], [Mirror.Lookup], [Mirror.Blob] and [Mirror.Diff] read objects, [Mirror.History] goes
// back through commits. [Mirror.Stage] builds a commit in memory, and [Mirror.Push] sends it as one pack of new objects
// together with the tip that is expected on the server: a compare-and-swap. Nothing is ever forced; a branch that moved
// is a [MovedError].
//
// A branch is named as git branch names it. A name that begins with refs/ is a ref beside the branches, in full: it is
// fetched and pushed in the same way.
//
// # Concurrency
//
// A Mirror may be used by several goroutines. Reads run beside a fetch or a push; operations that
// talk to the server take turns. One process at a time may have a mirror's directory open.
//
// # Invariants
//
//   - A commit that the mirror holds is complete: its tree and everything below are there too, and so are its
//     parents, except at the edge of a shallow fetch. Where the server can leave blobs out, it does: the mirror is
//     partial then, and [Mirror.Bring] has the blobs come that are to be read.
//   - What is on disk is complete without what is in memory. Objects that arrive in small fetches and pushes live in
//     a bounded overlay in memory, written out as one pack when it is full, at Close, and at Forget where it is half
//     full. What comes in large fetches goes to disk.
//   - The directory may be deleted at any time while no process has it open. A directory that cannot be
//     read is emptied and filled again; nothing is lost, since only pushed commits count.
//   - No credential reaches a log, an error, or the disk.
package git
