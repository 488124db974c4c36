package rampart.library.windows_test

import data.rampart.library.windows

at(text) := time.parse_rfc3339_ns(text)

span := {"name": "christmas", "start": "2026-12-20T00:00:00Z", "end": "2027-01-06T00:00:00+01:00"}

weekend := {"name": "weekend", "days": ["Sat", "Sun"], "timezone": "Europe/Berlin"}

office := {"name": "office", "days": ["Mon", "Tue"], "from": "08:30", "to": "17:00"}

night := {"name": "night", "days": ["Fri"], "from": "22:00", "to": "06:00"}

holidays := {"name": "holidays", "dates": ["12-25", "2026-05-01"]}

open_at(window, zone, text) if windows.open(window, zone) with time.now_ns as at(text)

test_span if {
	not open_at(span, "UTC", "2026-12-19T23:59:59Z")
	open_at(span, "UTC", "2026-12-20T00:00:00Z")
	open_at(span, "UTC", "2027-01-05T22:59:59Z")
	not open_at(span, "UTC", "2027-01-05T23:00:00Z")
}

test_weekend_in_its_zone if {
	open_at(weekend, "America/New_York", "2026-03-06T23:00:00Z") # Saturday 00:00 in Berlin
	not open_at(weekend, "America/New_York", "2026-03-06T22:59:59Z")
	open_at(weekend, "UTC", "2026-03-08T22:59:59Z")
	not open_at(weekend, "UTC", "2026-03-08T23:00:00Z")
}

test_hours_of_days if {
	open_at(office, "UTC", "2026-03-02T08:30:00Z") # a Monday
	not open_at(office, "UTC", "2026-03-02T08:29:59Z")
	not open_at(office, "UTC", "2026-03-02T17:00:00Z")
	not open_at(office, "UTC", "2026-03-04T09:00:00Z")
	open_at(office, "Europe/Berlin", "2026-03-02T07:30:00Z")
}

test_over_midnight_belongs_to_the_day_it_begins if {
	open_at(night, "UTC", "2026-03-06T22:00:00Z") # Friday
	open_at(night, "UTC", "2026-03-07T05:59:59Z")
	not open_at(night, "UTC", "2026-03-07T06:00:00Z")
	not open_at(night, "UTC", "2026-03-06T05:00:00Z")
	not open_at(night, "UTC", "2026-03-07T22:00:00Z")
}

# The Sunday on which Berlin's clocks go forward has 23 hours: half past midnight on Monday, 24 hours ago was Saturday.
test_yesterday_on_a_short_day if {
	sunday := {"name": "sunday night", "days": ["Sun"], "from": "23:00", "to": "01:00", "timezone": "Europe/Berlin"}
	open_at(sunday, "UTC", "2026-03-29T22:30:00Z") # Monday 00:30
	not open_at(sunday, "UTC", "2026-03-28T23:30:00Z") # Sunday 00:30
}

test_dates if {
	open_at(holidays, "UTC", "2026-12-25T10:00:00Z")
	open_at(holidays, "UTC", "2031-12-25T10:00:00Z")
	open_at(holidays, "UTC", "2026-05-01T00:00:00Z")
	not open_at(holidays, "UTC", "2027-05-01T00:00:00Z")
	not open_at(holidays, "UTC", "2026-12-26T00:00:00Z")
}

# ends says until when a window that is open at a time stays open, and checks that it is open up to then.
ends(window, zone, text) := end if {
	open_at(window, zone, text)
	end := windows.until(window, zone) with time.now_ns as at(text)
	last := at(end) - 1
	windows.open(window, zone) with time.now_ns as last
}

test_until if {
	ends(span, "UTC", "2026-12-24T12:00:00Z") == "2027-01-06T00:00:00+01:00"
	ends(weekend, "UTC", "2026-03-07T12:34:56.789Z") == "2026-03-07T23:00:00Z" # Sunday 00:00 in Berlin
	ends(office, "UTC", "2026-03-02T08:30:00Z") == "2026-03-02T17:00:00Z"
	ends(office, "Asia/Kolkata", "2026-03-02T08:30:30Z") == "2026-03-02T11:30:00Z"
	ends(night, "UTC", "2026-03-06T22:00:00Z") == "2026-03-07T06:00:00Z"
	ends(night, "UTC", "2026-03-07T05:59:59Z") == "2026-03-07T06:00:00Z"
	ends(holidays, "UTC", "2026-12-25T10:00:00Z") == "2026-12-26T00:00:00Z"
	ends({"name": "day", "days": ["Fri"], "from": "08:00", "to": "08:00"}, "UTC", "2026-03-06T08:00:00Z") == "2026-03-07T08:00:00Z"
}

test_words if {
	windows.describe(span) == "christmas (until 2027-01-06T00:00:00+01:00)"
	windows.describe(weekend) == "weekend (Sat, Sun; Europe/Berlin)"
	windows.describe(office) == "office (Mon, Tue; 08:30 to 17:00)"
	windows.describe({"name": "evening", "days": ["Fri"], "from": "18:00"}) == "evening (Fri; 18:00 to 24:00)"
	windows.describe({"name": "late", "dates": ["12-31"], "to": "08:00"}) == "late (12-31; 00:00 to 08:00)"
}
