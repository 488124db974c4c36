package rampart.rollout

import data.rampart.config.rollout.freeze
import data.rampart.library.match
import data.rampart.library.windows

# METADATA
# title: Freeze windows
# description: >-
#   Nothing is raised while a window is open: spans of time, weekly windows, holidays. Taking traffic back is always
#   allowed. Off until a window is configured.
# custom:
#   rule: rollout.freeze
#   parameters:
#     timezone: the time zone of windows that name none, such as Europe/Berlin
#     actions: the kinds of actions that are frozen
#     windows: >-
#       a list of windows; each has a name and start and end (RFC 3339), or days (Mon to Sun) or dates (YYYY-MM-DD, or
#       MM-DD for every year), with from and to (HH:MM; over midnight if to is not after from) and timezone; environments
#       (patterns) and labels narrow it
deny contains {"rule": "rollout.freeze", "msg": msg, "window": window.name, "until": windows.until(window, freeze.timezone)} if {
	some window in freeze.windows
	input.action.kind in freeze.actions
	not input.action.lowers
	match.scope(window)
	windows.open(window, freeze.timezone)
	msg := sprintf("frozen: %s", [windows.describe(window)])
}
