# METADATA
# title: Globs
# description: Texts that fit a pattern. Import data.rampart.library.globs.
package rampart.library.globs

# METADATA
# title: Does a text fit a pattern
# description: >-
#   In a pattern "*" is any text and "?" any character; everything else is itself. The time that it takes grows with
#   the length of the text alone, which glob.match's does not.
fits(pattern, text) if regex.match(expression(pattern), text)

expression(pattern) := concat("", ["^(?s:", replace(replace(plain, `\*`, ".*"), `\?`, "."), ")$"]) if {
	plain := regex.replace(pattern, `[\\.+*?()|\[\]{}^$]`, `\$0`)
}
