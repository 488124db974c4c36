package input

import (
	"math"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// digitsOfRate are the significant digits of a failure rate.
const digitsOfRate = 4

// hundredths rounds evidence, a logarithm to the base 10. Whether it reaches the bound is said by worse and
// aboveCeiling, which are decided before it is rounded.
func hundredths(f float64) float64 { return math.Round(f*100) / 100 }

// canaryOf is what the candidate is judged by. Where nothing is judged there are only the target's and the current
// version's raw counts, if they were asked for.
func canaryOf(s *rollout.Snapshot, p *rollout.Proposal) ast.Value {
	o := newObject()
	c := p.Canary
	if c == nil {
		c = &rollout.Canary{Against: s.Observation.Routing.Current}
		if p.Target != nil {
			c.Candidate = p.Target.BuildID
		}
	}
	putSide(o, "candidate", s, c)
	putSide(o, "current", s, c)
	stuck := stuckOf(s)
	if p.Canary == nil {
		o.put("stuck", stuck.value())
		return o.value()
	}
	judgeStuck(stuck, c.Stuck)
	o.put("stuck", stuck.value())
	o.text("phase", string(c.Phase))
	o.time("since", c.Since)
	o.text("problem", c.Problem)
	if !compared(c) {
		return o.value()
	}
	o.flag("enough", c.Enough)
	o.flag("worse", c.Worse)
	o.flag("aboveCeiling", c.AboveCeiling)
	o.number("evidence", hundredths(c.Evidence))
	o.number("ceilingEvidence", hundredths(c.CeilingEvidence))
	o.number("bound", hundredths(c.Bound))
	return o.value()
}

// putSide adds one side of the comparison: the raw counts, and once they are compared how many of the closed count as
// failed.
func putSide(o *object, key string, s *rollout.Snapshot, c *rollout.Canary) {
	buildID, n := c.Candidate, c.CandidateCounts
	if key == "current" {
		buildID, n = c.Against, c.AgainstCounts
	}
	v := s.Observation.Version(buildID)
	if v == nil || buildID == "" {
		return
	}
	side := closedOf(v.Closed)
	side.text("buildID", buildID)
	if compared(c) && v.Closed.Known {
		counted := newObject()
		counted.integer("closed", n.Closed)
		counted.integer("failed", n.Failed)
		if n.Closed > 0 {
			counted.rounded("rate", float64(n.Failed)/float64(n.Closed), digitsOfRate)
		}
		side.put("counted", counted.value())
	}
	o.put(key, side.value())
}

func stuckOf(s *rollout.Snapshot) *object {
	o := newObject()
	o.time("since", s.Observation.Stuck.Since)
	o.put("unattributed", countOf(s.Observation.Stuck.Unattributed))
	o.put("problems", countOf(s.Observation.Stuck.Problems))
	return o
}

func judgeStuck(o *object, j rollout.StuckJudgment) {
	o.text("problem", j.Problem)
	o.integer("candidate", j.Candidate)
	o.text("workflow", j.Workflow)
	o.integer("unresolved", j.Unresolved)
}

// compared reports whether the test had anything to say; it may although one side is not known.
func compared(c *rollout.Canary) bool { return c.Bound > 0 }
