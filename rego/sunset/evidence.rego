package rampart.sunset

import data.rampart.library.removal

# METADATA
# title: Proof before removal
# description: >-
#   A version is scaled down, deleted or removed only on positive proof, in each read of this cycle: not asked for, not
#   routed, no open workflow pinned to it, drained (or never routed) for long enough, the rollback window over, and for
#   later steps the earlier ones seen to be done. An unknown fact proves nothing.
# custom:
#   rule: sunset.evidence
#   parameters:
#     minScaledownDelay: the least time between drained and scaled down, whatever the spec says
#     minDeleteDelay: the least time between drained and deleted, whatever the spec says
deny contains {"rule": "sunset.evidence", "msg": msg} if {
	input.action.removes
	some msg in removal.missing
}
