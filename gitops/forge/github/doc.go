// Package github is a forge.Forge for GitHub and GitHub Enterprise, through google/go-github.
//
// What GitHub does otherwise than the others, and what is made of it here:
//
//   - An installation of an App is not a user, and may not ask who it is. GraphQL tells it, for every kind of token.
//   - Automatic merge is only in GraphQL, which is asked by the same client. It is refused where nothing is left to
//     wait for: such a pull request is merged at once.
//   - Anybody who can read a repository can approve a pull request. Only approvals of those who may write are given;
//     those of an App are not.
//   - A repository that was transferred is found by its old name, and its branches are not: they are asked for by the
//     new owner.
//   - Of reviewers one that cannot be asked refuses all: then each is asked for alone. Teams are named by their slug.
//   - Its second rate limit may have neither a number nor a time, only a link to its documentation: it is left alone
//     for a minute.
//
// A Forge may be used by several goroutines. It remembers only which account it is.
package github
