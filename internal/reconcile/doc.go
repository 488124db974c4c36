// Package reconcile is the one way through the house: read, decide, render, write.
//
// A Planner reads a repository and Temporal and decides; it has nothing to write with, so a dry run is a Planner. A
// Reconciler is a Planner with writers: Once carries out one cycle in the order that keeps the promises: what lowers
// traffic goes to Temporal before it is committed, what raises it only after the commit was pushed, and only if nobody
// moved the routing since.
//
// Nothing that matters is kept between cycles: a Reconciler can be killed at any instruction, and the next one, on any
// machine, goes on from what Git and Temporal say. What it does remember only saves work and explains failures. It is
// used by one goroutine at a time; it observes several worker deployments at once.
package reconcile
