package cmdutil

import "path/filepath"

// The parts of SARIF 2.1.0 that code scanners read (https://docs.oasis-open.org/sarif/sarif/v2.1.0/).
type (
	// SARIFLog is a report of one run, to encode as JSON.
	SARIFLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []SARIFResult `json:"results"`
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
	// SARIFResult is one problem or finding.
	SARIFResult struct {
		RuleID       string             `json:"ruleId"`
		Level        string             `json:"level"`
		Message      sarifMessage       `json:"message"`
		Locations    []SARIFLocation    `json:"locations"`
		Suppressions []SARIFSuppression `json:"suppressions,omitempty"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	// SARIFLocation is the place of a result.
	SARIFLocation struct {
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
	// SARIFSuppression says why a result does not count.
	SARIFSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
)

// NewSARIF makes a report of results, with the rules that they are of.
func NewSARIF(results []SARIFResult) SARIFLog {
	rules := map[string]bool{}
	for _, r := range results {
		rules[r.RuleID] = true
	}
	driver := sarifDriver{Name: "rampart", InformationURI: "https://github.com/rampart-gitops/rampart",
		Rules: []sarifRule{}}
	for _, id := range SortedKeys(rules) {
		driver.Rules = append(driver.Rules, sarifRule{id})
	}
	return SARIFLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0",
		Runs: []sarifRun{{Tool: sarifTool{driver}, Results: results}}}
}

// SARIFLocations gives the place of a result; a line or column of 0 is not known.
func SARIFLocations(file string, line, column int) []SARIFLocation {
	at := sarifPhysical{Artifact: sarifArtifact{filepath.ToSlash(file)}}
	if line > 0 {
		at.Region = &sarifRegion{line, column}
	}
	return []SARIFLocation{{at}}
}
