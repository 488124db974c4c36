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
