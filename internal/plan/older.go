package plan

import (
	"strings"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// olderServer says what Temporal's release lacks that the spec or each rollout needs, "" for nothing. While the release
// is not known, the status keeps what it said.
func (r *resolver) olderServer() string {
	version := r.obs.ServerVersion
	if version == "" {
		if was := r.s.Record.LastStatus(); was != nil {
			return was.OlderServer
		}
		return ""
	}
	if r.spec == nil {
		return ""
	}
	_, analysis := r.analysisOf()
	evacuate := r.sunset().Evacuate
	asked := map[rollout.Feature]bool{
		rollout.ReportedProblems: analysis,
		rollout.CurrentTimes:     true, // whatever a spec asks for
		rollout.OneTimeOverrides: evacuate != nil && evacuate.MoveTo != nil,
	}
	var said []string
	for _, f := range rollout.Features() {
		if asked[f] && f.MissingIn(version) {
			said = append(said, f.OlderServer(version))
		}
	}
	return strings.Join(said, ". ")
}
