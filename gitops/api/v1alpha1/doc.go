// Package v1alpha1 holds the objects that Rampart reads from a repository and writes back to it. These are the
// temporal.io kinds (worker deployments, connections, resource templates) and the rampart.dev kinds (configuration,
// waivers, routing). It decodes them strictly, fills in defaults and validates them, so that nothing behind this
// package meets an unknown field, a bad duration or a bad percentage.
//
// Everything here is a value: no I/O, no clock, safe for concurrent use. A decoded object is not changed
// after it was returned.
package v1alpha1
