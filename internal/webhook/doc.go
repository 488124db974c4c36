// Package webhook hears from forges that something happened, and wakes the bot. That is all a delivery can do: what it
// says is compared with what the bot watches, to leave out what is surely about something else, and is then forgotten.
// What happened is read from Git and the forge by the cycle that follows, as it would be without webhooks, only sooner.
//
// Three proofs are known, whichever a request comes with:
//
//   - the HMAC-SHA256 of the body, in hex: X-Hub-Signature-256 of GitHub, X-Gitea-Signature, X-Forgejo-Signature, and
//     any other sender that can make one;
//   - Standard Webhooks (https://www.standardwebhooks.com): an HMAC-SHA256 of ID, time and body, in base64, as GitLab
//     makes it with a signing token, "whsec_" and the key in base64;
//   - the secret itself in X-Gitlab-Token, as GitLab sends it with a secret token.
//
// A replay costs at most one cycle. What is remembered of a delivery is what its proof covers: its ID and time with
// Standard Webhooks, its body with an HMAC of the body, since the IDs of GitHub and Gitea are not signed. Beside a bare
// token nothing is, so its ID is taken as it is: that keeps retries apart, and no attacker.
//
// Bodies are hashed as they come, up to MaxBody bytes. At most a megabyte is kept, to be looked at once the proof
// holds: nothing is parsed that is not proven.
//
// All of it is safe for concurrent use.
package webhook
