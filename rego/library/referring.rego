# METADATA
# title: Versions and the objects that their pod templates name
# description: >-
#   What a change removes although versions need it. Import data.rampart.library.referring.
package rampart.library.referring

# METADATA
# title: The versions that have traffic or open workflows, as the record has it; one whose state is not known may have
needed contains version if {
	some version in input.references
	not version.scaledDown
	version.state in {"Current", "Ramping", "Draining", "Unknown"}
}

# METADATA
# title: What the change removes though a needed version names it, with the files that held it, and these versions
removed contains {"kind": lost.kind, "name": lost.name, "files": lost.removed, "versions": versions} if {
	some version in needed
	some lost in version.objects
	lost.removed
	versions := {sprintf("%s (%s)", [other.buildID, lower(other.state)]) |
		some other in needed
		some named in other.objects
		named.kind == lost.kind
		named.name == lost.name
	}
}
