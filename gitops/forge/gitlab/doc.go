// Package gitlab is a forge.Forge for GitLab, its own client. A pull request is a merge request here, and its number
// the one that people see in the project ("!7").
//
// What GitLab does otherwise than the others, and what is made of it here:
//
//   - A draft is one whose title begins so ("Draft:"). Titles are without it here.
//   - Lines of a text that begin with a slash are commands ("/merge"), and would be done with the rights of the bot.
//     They are written with a backslash before it, which is not shown and is left out when a body is read.
//   - Groups cannot be asked for a review: approval rules and CODEOWNERS name them. Free editions take one reviewer
//     only. Who was left out without a word is told.
//   - Merging by a merge commit or by rebase is what the project does, not what is asked for: its "merge method" has
//     to be that one. A fast-forward that needs a rebase first is not ready: GitLab would make other commits of those
//     that were looked at.
//   - A status that is set again as it is, is refused: it is looked whether it is so.
//   - An approval does not tell which commit it is for.
//   - The project is asked for by its number, which stays when it is renamed.
//
// A Forge may be used by several goroutines. It remembers only which account and which project it is.
package gitlab
