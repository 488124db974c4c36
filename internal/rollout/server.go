package rollout

import "fmt"

// Feature is something that only newer Temporal servers can do.
type Feature struct {
	// Major and Minor are the first release that can.
	Major, Minor int
	// Lacks says what an older server cannot do.
	Lacks string
	// Instead says what Rampart does on an older server.
	Instead string
}

// The features that Rampart uses and does not require. docs/compatibility.md explains each.
var (
	ReportedProblems = Feature{1, 30, "cannot count workflows whose workflow task keeps failing",
		"an analysis judges by closed workflows and by first workflow tasks that never complete"}
	CurrentTimes = Feature{1, 30, "does not tell when a version became current",
		"traffic that moved there and back between two reads is not recorded"}
	OneTimeOverrides = Feature{1, 32, "cannot move a workflow for one task", "sunset.evacuate.moveTo waits"}
)

// Features lists every Feature, oldest release first.
func Features() []Feature { return []Feature{ReportedProblems, CurrentTimes, OneTimeOverrides} }

// Release is the first release that has the feature, such as "1.30".
func (f Feature) Release() string { return fmt.Sprintf("%d.%d", f.Major, f.Minor) }

// In reports whether a server of a version such as "1.29.1" has the feature; "" if the version cannot be read.
func (f Feature) In(version string) Answer {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return ""
	}
	if major < f.Major || major == f.Major && minor < f.Minor {
		return No
	}
	return Yes
}

// MissingIn reports whether a server of a version is known to lack the feature.
func (f Feature) MissingIn(version string) bool { return f.In(version) == No }

// OlderServer says what a server of a version lacks, what happens instead, and what to do.
func (f Feature) OlderServer(version string) string {
	return fmt.Sprintf("Temporal %s %s (%s or later can): %s. Upgrade the server to %s or later", version, f.Lacks,
		f.Release(), f.Instead, f.Release())
}
