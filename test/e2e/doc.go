// Package e2e plays whole rollouts: the built binary, a real Git repository, a real Temporal with real workers, and a
// stand-in for ArgoCD and the kubelet that runs what Git says. Each test has a Temporal namespace and a repository of its
// own and runs beside the others.
package e2e
