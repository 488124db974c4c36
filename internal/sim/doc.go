// Package sim plays a rollout in a scripted world on a virtual clock. It runs the bot's own cycles
// (reconcile.Reconciler) on a small model of Temporal, of the workers, of Git and of the people who push and approve.
//
// There is no I/O, no clock and no randomness: the same input gives the same timetable. Time jumps from one cycle in
// which something happens to the next. While policy may change its mind by itself (it holds something, or counts
// workflows), the cycles between are tried without being carried out: a change of mind that lasts is found in the first
// cycle in which it is one; one that is taken back within ten minutes (1/2000 of the simulation's length, if that is
// more) may be missed.
//
// The model is simpler than the world: all workers of a version come and go together and poll one workflow and one
// activity task queue, traffic is steady, each workflow is pinned and takes the same time. A Run is used by one
// goroutine; several may go on at once.
package sim
