// Package policy judges proposals by Rego policies: the default library (package rego) and what a repository adds.
//
// A policy can stop a raise, never a retreat. What cannot be evaluated (a module that does not compile, an error, a
// time-out, a result of the wrong shape, a package without any defined rule, a fact that is not known) is a hold that
// says where, and never a pass. Where a repository's module fails, the library is still asked, so that a broken policy
// cannot keep a bad build in traffic.
//
// Evaluation reads nothing but its input: no network, no files, no environment, no randomness, and the snapshot's Now
// for a clock. The same input gives the same verdicts, byte for byte.
//
// An Engine does not change after Compile and is safe for concurrent use.
package policy
