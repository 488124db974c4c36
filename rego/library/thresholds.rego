# METADATA
# title: Thresholds on facts
# description: A threshold is an object with metric, and max or min or both. Import data.rampart.library.thresholds.
package rampart.library.thresholds

# METADATA
# title: How the metric is beyond its threshold, in words
# description: Undefined if it is not, and for a fact that is missing or too old.
breach(t) := sprintf("%s is %v, more than %v", [t.metric, fresh_value(t.metric), t.max]) if {
	fresh_value(t.metric) > t.max
}

breach(t) := sprintf("%s is %v, less than %v", [t.metric, fresh_value(t.metric), t.min]) if {
	fresh_value(t.metric) < t.min
	not fresh_value(t.metric) > object.get(t, "max", fresh_value(t.metric))
}

fresh_value(name) := input.facts[name].value if input.facts[name].fresh
