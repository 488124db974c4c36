// Package forge is what the bot asks of the place where people review: GitHub, GitLab, Gitea, or [None]. A [Forge]
// knows one repository. It finds, opens, changes, closes and merges pull requests (merge requests, on GitLab), and sets
// and reads commit statuses. Branches and commits are Git's, and are not asked for here.
//
// # What an adapter is made of
//
// [Locate] tells the forge, the repository and the address of its API from a clone URL. [NewClient] gives an
// http.Client that adapters hand to the official library of their forge: it adds the token to each request, and bounds,
// times and guards what is sent and read. Each adapter turns the answers of its forge into the types and errors of this
// package.
//
// # Concurrency
//
// A Forge may be used by several goroutines, and by several bots at once: of two that open the same pull request, one
// gets an [ExistsError].
//
// # Invariants
//
//   - Who somebody is comes from the forge's own fields. Nothing is read out of a title, a body or a comment.
//   - A pull request from a fork is never listed, whatever its branch is called.
//   - What a person wrote stays: labels, title and body change only where a [Change] says so.
//   - No token reaches an error, a log or a host other than the forge's; none travels over plain HTTP, except on this
//     machine.
//   - A call that the forge refused says what was refused and what is needed for it ([RefusedError]); while the forge
//     asks to be left alone, nothing is sent ([RateLimitError]).
package forge
