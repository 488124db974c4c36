package rampart.library.globs_test

import data.rampart.library.globs

test_fits if {
	every pair in [
		["*", ""], ["*", "prod"], ["prod-*", "prod-eu.west"], ["*-SNAPSHOT", "1.0-SNAPSHOT"], ["v?", "v1"], ["a+b", "a+b"],
		["[x]{y}(z)|^$", "[x]{y}(z)|^$"], [`a\b`, `a\b`], ["*a*a*a*a*", "xaxaxaxax"], ["", ""], ["*", "two\nlines"],
	] {
		globs.fits(pair[0], pair[1])
	}
}

test_does_not_fit if {
	every pair in [["prod", "prod-eu"], ["prod-*", "staging"], ["v?", "v"], ["a.c", "abc"], ["", "x"], ["{a,b}", "a"]] {
		not globs.fits(pair[0], pair[1])
	}
}

test_takes_no_time if {
	text := concat("", [x | some _ in numbers.range(1, 1000); x := "a"])
	not globs.fits("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text)
}
