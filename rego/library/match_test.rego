package rampart.library.match_test

import data.rampart.library.match

prod := {
	"environment": {"name": "prod-eu"},
	"deployment": {"metadata": {"labels": {"tier": "gold", "team": "pay"}}},
}

test_environment if {
	match.environment(["staging", "prod-*"]) with input as prod
	match.environment(["*"]) with input as prod
	not match.environment(["prod"]) with input as prod
	not match.environment([]) with input as prod
}

test_scope_without_conditions if match.scope({}) with input as prod

test_scope_by_environment if {
	match.scope({"environments": ["prod-eu"]}) with input as prod
	not match.scope({"environments": ["staging"]}) with input as prod
}

test_scope_by_labels if {
	match.scope({"labels": {"tier": "gold"}}) with input as prod
	match.scope({"labels": {"tier": "gold", "team": "pay"}}) with input as prod
	not match.scope({"labels": {"tier": "gold", "team": "ship"}}) with input as prod
	not match.scope({"labels": {"zone": "a"}}) with input as prod
}
