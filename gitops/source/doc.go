// Package source builds the objects of a folder with a kustomization.yaml or a Chart.yaml, as kustomize build and helm
// template do.
//
// Collect gathers from a tree of files all that a build may look at. Build makes objects of it with the libraries of
// the two tools, and looks at nothing else: no disk, no network, no cluster, no clock, no chance. What a folder says
// may never end, so a Process runs Build in a process of its own, bounded in time and memory. Values are not changed
// once they are made; a Process is used by one goroutine at a time.
package source
