package main

import (
	"path/filepath"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// The parts of SARIF 2.1.0 that code scanners read (https://docs.oasis-open.org/sarif/sarif/v2.1.0/).
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Version        string      `json:"version,omitempty"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID string `json:"id"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		Level        string             `json:"level"`
		Message      sarifMessage       `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
)

// The rules of problems that no policy found.
const (
	ruleInvalid = "object.invalid"
	ruleWarning = "object.warning"
)

// rulePolicy is what the names of checks of policies begin with; what does not compile is policy.broken.
const (
	rulePolicy       = "policy."
	rulePolicyBroken = rulePolicy + "broken"
)

func sarifOf(v validation) sarifLog {
	results := []sarifResult{}
	for _, p := range v.Problems {
		r := sarifResult{RuleID: ruleInvalid, Level: "error", Locations: sarifAt(p.File, p.Line, p.Column)}
		if p.Severity == v1alpha1.Warning {
			r.RuleID, r.Level = ruleWarning, "warning"
		}
		text := v1alpha1.Problem{Path: p.Path, Message: p.Message, Suggestion: p.Suggestion}.String()
		r.Message.Text = printable.Line(strings.TrimPrefix(text, ": ")) // the place is told apart from the message
		results = append(results, r)
	}
	for _, f := range v.Findings {
		r := sarifResult{RuleID: f.Rule, Level: "error", Locations: sarifAt(f.File, f.Line, 0)}
		r.Message.Text = printable.Line(f.Deployment + ": " + f.Message)
		if f.Effect.Strictness() <= rollout.Warn.Strictness() {
			r.Level = "warning"
		}
		if f.Waived != "" {
			r.Suppressions = []sarifSuppression{{Kind: "external", Justification: "waived by " + f.Waived}}
		}
		results = append(results, r)
	}
	return newSARIF(results)
}

func sarifOfPolicies(c policyCheck) sarifLog {
	results := []sarifResult{}
	for _, p := range c.Problems {
		r := sarifResult{RuleID: rulePolicyBroken, Level: "error", Locations: sarifAt(p.File, p.Line, 0)}
		if p.Check != "" {
			r.RuleID = rulePolicy + string(p.Check)
		}
		r.Message.Text = strings.TrimPrefix(policyProblem{Message: p.Message, Environments: p.Environments}.String(), ": ")
		results = append(results, r)
	}
	return newSARIF(results)
}

// newSARIF is a log of results, with the rules that they are of.
func newSARIF(results []sarifResult) sarifLog {
	rules := map[string]bool{}
	for _, r := range results {
		rules[r.RuleID] = true
	}
	driver := sarifDriver{Name: "rampart", InformationURI: "https://github.com/rampart-gitops/rampart", Rules: []sarifRule{}}
	for _, id := range sortedKeys(rules) {
		driver.Rules = append(driver.Rules, sarifRule{id})
	}
	return sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0",
		Runs: []sarifRun{{Tool: sarifTool{driver}, Results: results}}}
}

func sarifAt(file string, line, column int) []sarifLocation {
	at := sarifPhysical{Artifact: sarifArtifact{filepath.ToSlash(file)}}
	if line > 0 {
		at.Region = &sarifRegion{line, column}
	}
	return []sarifLocation{{at}}
}
