// Package gitops reads worker deployments from a Git repository and writes manifests, routing and status back.
//
// A Reader turns a tree of files (a commit in a mirror, or a plain folder) into a rollout.World: environments, specs,
// connections, policies, records. A Repository is a branch on a server: Read gives its world at the tip, Commit pushes
// one commit on top of what was read, or says that the branch moved.
//
// Work is keyed by Git's object hashes: a directory whose hash was seen before is not listed again, a file whose hash
// was seen before is not decoded again. A Reader keeps that between calls, and is used by one goroutine at a time.
package gitops
