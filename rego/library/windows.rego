# METADATA
# title: Windows of time
# description: >-
#   A window is either a span (start, end: RFC 3339) or whole or partial days: days of the week or dates (YYYY-MM-DD, or
#   MM-DD in every year), with from and to as HH:MM in its time zone. One whose to is not after its from runs over
#   midnight and belongs to the day it begins on. Import data.rampart.library.windows.
package rampart.library.windows

day_ns := ((24 * 60) * 60) * 1000000000

# METADATA
# title: Is the window open now
# description: The zone is for a window that names none.
open(window, zone) if open_at(window, zone, time.now_ns())

open_at(window, _, ns) if {
	time.parse_rfc3339_ns(window.start) <= ns
	ns < time.parse_rfc3339_ns(window.end)
}

open_at(window, zone, ns) if {
	tz := object.get(window, "timezone", zone)
	now := minutes_at(tz, ns)
	from := minutes(object.get(window, "from", "00:00"))
	to := minutes(object.get(window, "to", "24:00"))
	inside(window, noon(tz, ns), now, from, to)
}

inside(window, today, now, from, to) if {
	from <= now
	now < to
	named(window, today)
}

inside(window, today, now, from, to) if {
	from >= to
	from <= now
	named(window, today)
}

inside(window, today, now, from, to) if {
	from >= to
	now < to
	named(window, today - day_ns)
}

# METADATA
# title: Until when a window that is open stays so
# description: >-
#   As RFC 3339. Of whole or partial days the end of the part that is open now; where clocks change before it, up to an
#   hour off.
until(window, _) := window.end if window.end

until(window, zone) := time.format(end_at(window, zone, time.now_ns())) if not window.end

# METADATA
# title: Until when one of several windows is open
# description: >-
#   As RFC 3339, in UTC. Windows that touch or overlap are one: it is the end of the last of them. Sixteen in a row are
#   looked at, and each day counts as one.
until_all_closed(list, zone) := time.format(four_by_four(list, zone, time.now_ns()))

four_by_four(list, zone, ns) := four_on(list, zone, four_on(list, zone, four_on(list, zone, four_on(list, zone, ns))))

four_on(list, zone, ns) := one_on(list, zone, one_on(list, zone, one_on(list, zone, one_on(list, zone, ns))))

# one_on is the latest end of the windows that are open at a time; that time, if none is.
one_on(list, zone, ns) := max({end_at(window, zone, ns) | some window in list; open_at(window, zone, ns)} | {ns})

end_at(window, _, _) := time.parse_rfc3339_ns(window.end) if window.end

end_at(window, zone, ns) := minute + (left * 60000000000) if {
	not window.end
	now := minutes_at(object.get(window, "timezone", zone), ns)
	left := remaining(now, minutes(object.get(window, "to", "24:00")))
	minute := ns - (ns % 60000000000)
}

remaining(now, to) := to - now if to > now

remaining(now, to) := (to + (24 * 60)) - now if to <= now

# noon is midday of the local date, taken as UTC: a point from which days can be counted without daylight saving.
noon(tz, ns) := time.parse_rfc3339_ns(sprintf("%04d-%02d-%02dT12:00:00Z", time.date([ns, tz])))

minutes_at(tz, ns) := (clock[0] * 60) + clock[1] if clock := time.clock([ns, tz])

minutes(text) := (to_number(substring(text, 0, 2)) * 60) + to_number(substring(text, 3, 2))

named(window, ns) if substring(time.weekday(ns), 0, 3) in window.days

named(window, ns) if {
	date := sprintf("%04d-%02d-%02d", time.date(ns))
	some d in window.dates
	endswith(date, d)
}

# METADATA
# title: The window in words
describe(window) := sprintf("%s (until %s)", [window.name, window.end]) if window.end

describe(window) := sprintf("%s (%s)", [window.name, concat("; ", details(window))]) if not window.end

# METADATA
# title: The window in words, with the time from which raising is possible again
describe_until(window, end) := sprintf("%s (until %s)", [window.name, end]) if window.end

describe_until(window, _) := describe(window) if not window.end

details(window) := array.concat(
	[concat(", ", window[key]) | some key in ["days", "dates"]],
	array.concat(
		[sprintf("%s to %s", [object.get(window, "from", "00:00"), object.get(window, "to", "24:00")]) |
			partial(window)
		],
		[window.timezone | true],
	),
)

partial(window) if window.from

partial(window) if window.to
