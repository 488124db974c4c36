package policies

import (
	"strings"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
)

// rulePolicy is what the names of checks of policies begin with; what does not compile is policy.broken.
const (
	rulePolicy       = "policy."
	rulePolicyBroken = rulePolicy + "broken"
)

func sarifOfPolicies(c policyCheck) cmdutil.SARIFLog {
	results := []cmdutil.SARIFResult{}
	for _, p := range c.Problems {
		r := cmdutil.SARIFResult{RuleID: rulePolicyBroken, Level: "error",
			Locations: cmdutil.SARIFLocations(p.File, p.Line, 0)}
		if p.Check != "" {
			r.RuleID = rulePolicy + string(p.Check)
		}
		r.Message.Text = strings.TrimPrefix(policyProblem{Message: p.Message, Environments: p.Environments}.String(),
			": ")
		results = append(results, r)
	}
	return cmdutil.NewSARIF(results)
}
