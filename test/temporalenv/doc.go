// Package temporalenv runs a real Temporal server, real workers and a stand-in for the cluster inside one process, for
// tests and for the demo.
//
// Server is Temporal itself on loopback with an in-memory SQLite store, behind a gRPC proxy that records what was
// asked, injects faults and can be taken down and brought back while the server keeps its state. Fleet plays the
// kubelet: it runs an SDK worker for every replica of a rendered Deployment, configured from the rendered environment
// alone. Fleet.Watch plays ArgoCD: it follows a branch, builds it with Kustomize, applies and prunes, and honors prune
// guards. Traffic starts workflows and tells how they closed and on which version.
//
// Concurrency: a Server and its Namespaces may be shared by parallel tests, each in a namespace of its own; records,
// faults and hooks are kept apart by namespace. A Fleet may be used from several goroutines. Only the standard
// flag-free settings in Options are read, never the process environment, which only the native git of Fleet.Watch
// inherits.
//
// Invariants: Address never changes during the life of a Server. A call is recorded once, when it is over, in that
// order. Call.Accepted tells what the server answered, whatever the caller was told. Nothing waits by sleeping: every
// wait polls a condition until its context ends.
package temporalenv
