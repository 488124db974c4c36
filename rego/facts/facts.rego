# METADATA
# title: Facts
# description: >-
#   Access to observed facts that can't be mistaken for an answer when there is none. Import data.rampart.facts.
package rampart.facts

# METADATA
# title: The value of a fact, or a hold
# description: >-
#   facts.require("error_rate") is the fact's value if it is fresh. A fact that is missing, failed or older than its
#   limit ends the evaluation with an error, which holds the action and names the fact and the line that asked. Under
#   plain opa test the error makes the rule undefined.
require(name) := input.facts[name].value if input.facts[name].fresh

require(name) := to_number(sprintf("fact %q %s", [name, state(name)])) if not input.facts[name].fresh

# METADATA
# title: Why a fact can't be relied on
state(name) := "is not known" if not input.facts[name]

state(name) := sprintf("could not be read: %s", [input.facts[name].error]) if input.facts[name].error

state(name) := sprintf("is older than %s (observed at %s)", [fact.maxAge, fact.observedAt]) if {
	fact := input.facts[name]
	not fact.error
}

state(name) := "was never observed" if {
	fact := input.facts[name]
	not fact.error
	not fact.observedAt
}

# METADATA
# title: The pods of a version in the cluster, or a hold
# description: >-
#   facts.pods(input.action.buildID) has desired, ready, available, pods and problems, as input.cluster.versions has
#   them. Where they are not known, the evaluation ends with an error, which holds the action and says why. The bot
#   reads a cluster with --kubeconfig only.
pods(build_id) := input.cluster.versions[build_id]

pods(build_id) := to_number(sprintf("the pods of %q are not known: %s", [build_id, pods_problem])) if {
	not input.cluster.versions[build_id]
}

# METADATA
# title: Why the pods of a version are not known
pods_problem := "the bot reads no cluster" if not input.cluster

pods_problem := input.cluster.problem

pods_problem := "it has no files in Git" if input.cluster.known
