package rampart.facts_test

import data.rampart.facts

known := {"rate": {"value": 0.5, "fresh": true, "observedAt": "2026-03-02T12:00:00Z"}}

test_fresh_fact if facts.require("rate") == 0.5 with input.facts as known

# Under the test runner the error that an unknown fact raises would end the test, so the words are tested by themselves.
test_missing if facts.state("rate") == "is not known" with input.facts as {}

test_failed if {
	facts.state("rate") == "could not be read: no route" with input.facts as {"rate": {
		"error": "no route",
		"fresh": false,
		"maxAge": "2m",
		"observedAt": "2026-03-02T11:00:00Z",
	}}
}

test_failed_at_once if facts.state("rate") == "could not be read: x" with input.facts as {"rate": {"error": "x", "fresh": false}}

test_stale if {
	facts.state("rate") == "is older than 2m (observed at 2026-03-02T11:00:00Z)" with input.facts as {"rate": {
		"value": 1,
		"fresh": false,
		"maxAge": "2m",
		"observedAt": "2026-03-02T11:00:00Z",
	}}
}

test_never if facts.state("rate") == "was never observed" with input.facts as {"rate": {"fresh": false}}

test_unknown_is_an_error_that_names_the_fact if {
	got := facts.require("rate") with input.facts as {"rate": {"fresh": false}}
		with to_number as said
	got == "fact \"rate\" was never observed"
}

said(text) := text

cluster := {"known": true, "versions": {"v2": {"ready": 1, "desired": 2}}}

test_pods if facts.pods("v2").ready == 1 with input.cluster as cluster

test_pods_of_another_version if {
	got := facts.pods("v3") with input.cluster as cluster with to_number as said
	got == "the pods of \"v3\" are not known: it has no files in Git"
}

test_pods_of_a_cluster_that_is_away if {
	got := facts.pods("v2") with input.cluster as {"known": false, "problem": "no answer"} with to_number as said
	got == "the pods of \"v2\" are not known: no answer"
}

test_pods_without_a_cluster if {
	got := facts.pods("v2") with input as {} with to_number as said
	got == "the pods of \"v2\" are not known: the bot reads no cluster"
}
