// Package forgetest is what servers that stand for GitHub and GitLab in tests have in common, and the tests that every
// adapter has to pass.
//
// A [World] is one repository as a forge sees it: people and their tokens, pull requests, labels, statuses, rules. Its
// branches are those of a real Git repository, served beside it: merging makes commits there, and what is pushed or
// deleted there is noticed. A [Contract] is the published description of an API: every request and every reply has to
// be in it, with nothing added. [Run] is the table of tests; a [Place] is what it needs of a forge beside the adapter,
// which a World is, and a real forge can be.
//
// Everything may be used by several goroutines. A server fails its test on anything that its contract does not
// describe.
package forgetest
