package rampart.rollout

import data.rampart.config.rollout.freeze
import data.rampart.library.freezes
import data.rampart.library.match
import data.rampart.library.windows

# METADATA
# title: Freeze windows
# description: >-
#   Nothing is raised while a window is open: spans of time, weekly windows, holidays. Windows that touch are one; until
#   is when raising is possible again. Taking traffic back is always allowed, and changed credentials of a connection
#   reach all versions. Off until a window is configured.
# custom:
#   rule: rollout.freeze
#   parameters:
#     timezone: the time zone of windows that name none, such as Europe/Berlin
#     actions: the kinds of actions that are frozen
#     windows: spans of time, days of the week and dates
deny contains {"rule": "rollout.freeze", "msg": msg, "window": window.name, "until": freezes.end} if {
	some window in freeze.windows
	input.action.kind in freeze.actions
	not input.action.lowers
	not input.action.update == "Connection"
	match.scope(window)
	windows.open(window, freeze.timezone)
	msg := sprintf("frozen: %s", [windows.describe_until(window, freezes.end)])
}
