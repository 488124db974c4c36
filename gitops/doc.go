// Package gitops reads worker deployments from a Git repository and writes manifests, routing and status back.
//
// A Repository is a branch on a server: Read gives its world at the tip (a rollout.World: environments, specs,
// connections, policies, records), Commit pushes one commit on top of what was read, or says that the branch moved. A
// Clone is a repository on disk. Both have the trees that package index turns into worlds.
package gitops
