// Package takeover turns live objects of a cluster into the files of a repository, so that the bot goes on where the
// in-cluster controller stopped. It also turns these files back into the controller's objects.
//
// It is pure: texts in, files out, safe for concurrent use. Nothing restarts: the manifest of a version is its live
// Deployment without what a server fills in, and what goes back has the names, labels, build IDs and hashes that the
// controller looks for. All of it or nothing: with one problem of severity Error there are no files.
package takeover
