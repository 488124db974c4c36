package rampart.rollout_test

import data.rampart.rollout

status_is(value, fresh) := {"status:argocd/workers": {"value": value, "fresh": fresh, "observedAt": "2026-03-02T11:00:00Z", "maxAge": "2m"}}

raising_with(facts) := object.union(raising, {"facts": facts, "environment": {"name": "prod"}})

requiring(extra) := [object.union({"context": "argocd/workers"}, extra)]

held_by_status(doc, required) := {f.msg |
	some f in rollout.hold with input as doc with data.rampart.config.rollout.statuses.required as required
	f.rule == "rollout.statuses"
}

test_statuses_success_passes if {
	count(held_by_status(raising_with(status_is("success", true)), requiring({}))) == 0
	count(held_by_status(raising_with({}), [])) == 0
	count(held_by_status(going_on, requiring({}))) == 0
}

test_statuses_others_hold if {
	every state in ["pending", "failure", "error", "SUCCESS", true, null] {
		count(held_by_status(raising_with(status_is(state, true)), requiring({}))) == 1
	}
}

test_statuses_say_which if {
	held_by_status(raising_with(status_is("failure", true)), requiring({})) == {"the commit status argocd/workers is failure, not success"}
	held_by_status(raising_with({}), requiring({})) == {"the commit status argocd/workers is not known"}
}

test_statuses_unknown_holds if {
	held_by_status(raising_with(status_is("success", false)), requiring({})) == {"the commit status argocd/workers is older than 2m (observed at 2026-03-02T11:00:00Z)"}
	failed := {"status:argocd/workers": {"error": "the forge is away", "fresh": false}}
	held_by_status(raising_with(failed), requiring({})) == {"the commit status argocd/workers could not be read: the forge is away"}
	odd := {"status:argocd/workers": {"value": "success", "fresh": "yes", "observedAt": "x"}}
	count(held_by_status(raising_with(odd), requiring({}))) == 1
	strange := {"status:argocd/workers": {"value": "success", "fresh": false, "observedAt": "2026-03-02T11:00:00Z"}}
	held_by_status(raising_with(strange), requiring({})) == {"the commit status argocd/workers is not success"}
}

test_statuses_scope if {
	count(held_by_status(raising_with({}), requiring({"environments": ["dev"]}))) == 0
	count(held_by_status(raising_with({}), requiring({"environments": ["pr*"]}))) == 1
}
