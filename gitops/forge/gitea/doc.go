// Package gitea is a forge.Forge for Gitea and Forgejo, through Gitea's own library.
//
// What Gitea does otherwise than the others, and what is made of it here:
//
//   - It cannot list the pull requests of a branch: all are listed and looked through. Filter.Open and Filter.Since
//     keep that short.
//   - A merged or closed pull request shows the branch of its name as it is now, not as it was: Get asks for
//     refs/pull/N/head.
//   - A draft is one whose title begins so ("WIP:"). Titles are without it here.
//   - Two can be opened for one branch at the same moment: the later one is closed again.
//   - Of reviewers one that cannot be asked refuses all, and teams are silently left out where they cannot be: each
//     is asked for after the pull request is open, and looked for afterwards.
//   - Automatic merge takes any commit, any method and any later push: commit and method are looked at before it is
//     ordered.
//
// A Forge may be used by several goroutines. It remembers only which account it is.
package gitea
