// Package bench measures whole cycles on a repository of many worker deployments: `make bench`. The Git server is real
// (git http-backend on loopback, in a process of its own); Temporal is in memory, so that what is measured is the bot
// and Git. TestScale has native git do the same work in the same run, in turn, and looks at the server's branch after
// each cycle. It also measures what worker deployments wait for where Temporal namespaces are slow, or hang: there
// Temporal's answers take time, within the bot's budget.
package bench
