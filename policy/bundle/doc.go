// Package bundle has the bot's own policies: directories on its disk, and OPA bundles that it downloads. They are the
// floor under a repository's policies. Where they come from is the bot's configuration alone; nothing in a repository
// makes it fetch anything.
//
// # What a bundle has to be
//
// A gzipped tar of Rego v1 and data as OPA writes it, bounded in size, downloaded and expanded, without links or paths
// that leave it; no delta, Wasm or plan. Where a key is configured it has to be signed with it. It has to compile
// beside the other bundles and the directories; all bundles and directories that changed are looked at together. One
// that is anything else is refused as a whole.
//
// # What is kept
//
// The last good bundle stays in force, in memory and in the cache, until a newer good one is there: a server that is
// away, and a bundle that is broken or wrongly signed, take no policy away. What is read from the cache is verified
// again; a cache that is damaged is as if there were none. The age of a bundle, since its server last confirmed it, and
// of a directory, since it could last be read, are facts that policies can judge by. A bundle that was never had is a
// layer with a problem, which holds every raise.
//
// # Concurrency
//
// A Store is safe for concurrent use. Poll and Refresh do the waiting; Floor gives what is known now, and never waits
// for a network.
package bundle
