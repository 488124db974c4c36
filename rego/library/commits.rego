# METADATA
# title: Commit statuses
# description: What others say of the commit that holds a version. Import data.rampart.library.commits.
package rampart.library.commits

import data.rampart.facts

# METADATA
# title: Is the status of this context known to be success
succeeded(context) if {
	input.facts[fact(context)].fresh == true
	input.facts[fact(context)].value == "success"
}

# METADATA
# title: What the status of this context is instead, in words
default said(_) := "is not success"

said(context) := facts.state(fact(context)) if not input.facts[fact(context)].fresh

said(context) := sprintf("is %v, not success", [input.facts[fact(context)].value]) if input.facts[fact(context)].fresh

fact(context) := concat("", ["status:", context])
