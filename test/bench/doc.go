// Package bench measures whole cycles on a repository of many worker deployments: `make bench`. The Git server is real
// (git http-backend on loopback); Temporal is in memory, so that what is measured is the bot and Git.
package bench
