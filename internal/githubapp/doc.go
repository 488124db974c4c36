// Package githubapp gets installation tokens of a GitHub App: what a bot logs in with at GitHub without being a person.
// A token is good for an hour; [Source.Token] gives the one there is and gets the next one before that ends.
//
// The App proves who it is with its private key, in a JWT of its own for each request; the key is read again for each,
// so that it can be changed while the bot runs. Neither key, JWT nor token gets into an error.
//
// # Concurrency
//
// A Source may be used by several goroutines: one of them asks GitHub, the others wait for its answer.
//
// # Invariants
//
//   - Nothing is sent over plain HTTP except to this machine, and nothing follows a redirect to another origin.
//   - A token is for one repository where one is named, whatever else the App may see.
package githubapp
