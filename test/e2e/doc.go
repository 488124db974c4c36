// Package e2e plays whole rollouts. It has the built binary, a real Git repository, a real Temporal with real workers,
// and a stand-in for ArgoCD and the kubelet that runs what Git says. Each test has a Temporal namespace and a
// repository of its own and runs beside the others. A complete run fails if a row of the rules never had a say; -rows
// prints which test saw which row.
package e2e
