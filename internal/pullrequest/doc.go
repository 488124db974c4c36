// Package pullrequest proposes to people what waits for their approval, and looks what becomes of that. There is a
// branch for each worker deployment, and a pull request where there is a forge. Nothing that it learns approves
// anything; only what is on the output's branch does. What it keeps in memory saves questions: everything is found
// again on the server.
package pullrequest
