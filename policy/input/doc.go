// Package input makes what policies see of a snapshot and a proposal: the values of OPA that are the document input.
//
// Instants are RFC 3339 in whole seconds and durations as in a spec (10m). Unknown, unset and zero values are left out,
// so that a rule about them is undefined; shares, percentages and known counts are always there. The document about an
// action:
//
//	now          the snapshot's time
//	environment  name, namespace, approval, output, cd, managerIdentity, workerEnv, status
//	rollouts     where the proposal begins a rollout: count of the environment's other worker deployments that roll
//	             one out, and names of the first of them; one whose record can't be read counts
//	deployment   namespace, name, path; with a usable spec kind, metadata (labels, annotations) and spec
//	connection   before, as the record has it, and after, as Git has it: name, hostPort, serverName, auth, secret
//	action       id, kind, buildID, from, to, step, steps, row, reason, cause, …; raises, lowers, removes, approved;
//	             resources, what changes of the objects made from templates: template, removes, scales, object (as
//	             the template says it); evacuation (stage, attempt, since, after, target, signal, jobID, count of
//	             open workflows) of those that stay
//	versions     of Git and Temporal, each with its record, drainage, queues, counts; target says which one is asked
//	             for
//	routing      as it was read: known, fresh, current, hasRamp, ramping, percentage, …
//	firstRead    routing and versions of the first of two reads in one cycle
//	record       what routing.yaml holds: desired, target, promotions, bars, hold, setAside, retire
//	facts        by name: value, observedAt, maxAge, fresh, source, error
//	cluster      where the bot reads the environment's cluster: known, observedAt, problem, and versions by build
//	             ID: desired, ready and available replicas, pods, and problems (reason, pods, message). Ask for them
//	             by facts.pods of data.rampart.facts
//	canary       candidate and the version that it is compared with (current): raw counts and rates, the stuck
//	             workflows, and what follows: phase, enough, worse, aboveCeiling, evidence, bound
//	gate         runs of the gate
//	references   where a change is judged before it is merged, and rules look at them: the recorded versions, each
//	             with its buildID, state, scaledDown, and the objects that its pod templates name (kind, name,
//	             optional), with the files that hold them, or held them before the change (removed)
//	git          branch; and where the policies look at git and it is known, the commit that gave the spec its
//	             content: commit, author, when, message, reverts, paths; signed and signer where the bot knows
//	             signers that it trusts
//	plan         row, reason, message, target (since says how long it has been asked for), actions
//	limits       the bot's own bounds
//	waivers      as they are in the repository
package input
