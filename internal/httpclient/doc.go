// Package httpclient has what requests to servers of others have in common: which redirects are followed, and how a
// failed connection is told. Its words leave out what changes from one time to the next, such as ports, since they get
// into Git. It keeps no state.
package httpclient
