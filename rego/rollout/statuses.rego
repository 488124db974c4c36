package rampart.rollout

import data.rampart.config.rollout.statuses
import data.rampart.library.commits
import data.rampart.library.match

# METADATA
# title: Commit statuses of others
# description: >-
#   No traffic is raised before the commit status of each context that is required is success, such as the one that Argo
#   CD sets. What counts is the newest commit with such a status that still holds the version as it was rendered. A
#   status that is not known, or too old, holds too. Off until a context is required.
# custom:
#   rule: rollout.statuses
#   parameters:
#     required: contexts of commit statuses
hold contains {"rule": "rollout.statuses", "msg": msg, "context": s.context} if {
	input.action.raises == true
	some s in statuses.required
	match.scope(s)
	not commits.succeeded(s.context)
	msg := sprintf("the commit status %s %s", [s.context, commits.said(s.context)])
}
