// Package reconcile runs the bot's cycle; see Reconciler.Cycle.
//
// Nothing that matters is kept between cycles: a Reconciler can be killed at any instruction, and the next one, on any
// machine, goes on from what Git and Temporal say. What it remembers only saves work and explains failures. One
// goroutine at a time runs cycles; in a cycle, groups work beside each other.
package reconcile
