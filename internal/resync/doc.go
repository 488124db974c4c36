// Package resync knows which worker deployments are due. Its table has a row for each about which a cycle decided to do
// nothing: on what, and until when that holds. It also knows those that wait because a cycle had no time for them.
//
// The rows are keyed by environment and name, and dropped when anything moves that they stand on. Without the table
// each worker deployment is described in each cycle, and the row "no-change cycle" of the benchmark fails.
package resync
