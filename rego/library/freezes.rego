# METADATA
# title: The freeze as a whole
# description: The configured windows that are about the worker deployment, taken together.
package rampart.library.freezes

import data.rampart.config.rollout.freeze
import data.rampart.library.match
import data.rampart.library.windows

# METADATA
# title: When raising is possible again
end := windows.until_all_closed([window | some window in freeze.windows; match.scope(window)], freeze.timezone)
