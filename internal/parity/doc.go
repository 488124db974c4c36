// Package parity keeps the table of what Temporal's in-cluster worker controller is tested for, and of what Rampart
// does in the same scenarios. That is docs/parity.md, generated from the tests.
//
// A test calls Compare with the cases of one section. Compare runs the cases and compares the section's table in the
// page, or writes it anew with -update; so neither a case nor the page can go stale. Each section belongs to one
// package. The page is one file: write it with -p 1. Only tests import this package.
package parity
