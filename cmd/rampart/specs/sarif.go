package specs

import (
	"strings"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// The rules of problems that no policy found.
const (
	ruleInvalid = "object.invalid"
	ruleWarning = "object.warning"
)

func sarifOf(v validation) cmdutil.SARIFLog {
	results := []cmdutil.SARIFResult{}
	for _, p := range v.Problems {
		r := cmdutil.SARIFResult{RuleID: ruleInvalid, Level: "error",
			Locations: cmdutil.SARIFLocations(p.File, p.Line, p.Column)}
		if p.Severity == v1alpha1.Warning {
			r.RuleID, r.Level = ruleWarning, "warning"
		}
		text := v1alpha1.Problem{Path: p.Path, Message: p.Message, Suggestion: p.Suggestion}.String()
		r.Message.Text = printable.Line(strings.TrimPrefix(text, ": ")) // the place is told apart from the message
		results = append(results, r)
	}
	for _, f := range v.Findings {
		r := cmdutil.SARIFResult{RuleID: f.Rule, Level: "error", Locations: cmdutil.SARIFLocations(f.File, f.Line, 0)}
		r.Message.Text = printable.Line(f.Deployment + ": " + f.Message)
		if f.Effect.Strictness() <= rollout.Warn.Strictness() {
			r.Level = "warning"
		}
		if f.Waived != "" {
			r.Suppressions = []cmdutil.SARIFSuppression{{Kind: "external", Justification: "waived by " + f.Waived}}
		}
		results = append(results, r)
	}
	return cmdutil.NewSARIF(results)
}
