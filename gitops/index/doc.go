// Package index reads what a tree has: environments, specs, connections, templates, waivers, policies and records, and
// which of them belong together. A Reader keeps what it decoded by Git's object hashes, so that what did not move costs
// nothing, and surveys give index entries of worker deployments.
//
// It knows no server and no history: package gitops has the trees.
package index
