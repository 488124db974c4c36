package compose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// message is what a commit says: for people. Nothing in it is ever relied on.
func message(env string, changed []*rollout.Decision) string {
	var b strings.Builder
	switch len(changed) {
	case 0:
		fmt.Fprintf(&b, "rampart(%s): list worker deployments\n", printable.Line(env))
		return b.String()
	case 1:
		fmt.Fprintf(&b, "rampart(%s): %s: %s\n", printable.Line(env), changed[0].Plan.Deployment,
			cut(printable.Line(summary(changed[0])[0]), 100))
	default:
		fmt.Fprintf(&b, "rampart(%s): %d worker deployments\n", printable.Line(env), len(changed))
	}
	policies := map[string]bool{}
	for _, d := range changed {
		fmt.Fprintf(&b, "\n%s\n", d.Plan.Deployment)
		for _, s := range summary(d) {
			fmt.Fprintf(&b, "  %s\n", cut(printable.Line(s), 400))
		}
		for i := range d.Plan.Actions {
			for _, s := range grounds(d, &d.Plan.Actions[i]) {
				fmt.Fprintf(&b, "  %s\n", cut(printable.Line(s), 400))
			}
		}
		policies[d.Plan.PolicyHash] = true
	}
	b.WriteString("\n")
	for _, d := range changed {
		if st := d.Plan.Status; st != nil && st.Decision != nil {
			fmt.Fprintf(&b, "Rampart-Spec: %s %s\n", d.Plan.Deployment, printable.Line(st.Decision.SpecDigest))
		}
	}
	for _, d := range changed { // beside the specs their blobs can be looked up
		if s := &d.Snapshot; s.Environment.Output.Branch != "" && s.Git.SpecBlob != "" {
			for _, f := range s.SpecFiles() {
				fmt.Fprintf(&b, "Rampart-Source: %s %s\n", printable.Line(f.Blob), printable.Line(f.Path))
			}
		}
	}
	for _, p := range slices.Sorted(maps.Keys(policies)) {
		if p != "" {
			fmt.Fprintf(&b, "Rampart-Policy: %s\n", printable.Line(p))
		}
	}
	return b.String()
}

// summary is what a decision comes to. One that only tells of the states of versions says so.
func summary(d *rollout.Decision) []string {
	if was := d.Snapshot.Record.Status; len(d.Plan.Actions) == 0 && was != nil {
		if told := render.StatesTold(was.Status, d.Plan.Status); told != nil {
			return []string{"status: " + strings.Join(told, ", ")}
		}
	}
	return d.Plan.Summary
}

// grounds are what an action goes on. They say why it came next, what its version was judged by where it moves traffic,
// and which rules were waived.
func grounds(d *rollout.Decision, a *rollout.Action) []string {
	var out []string
	if a.Reason != "" && a.Routes() {
		if because := "because " + a.Reason; !slices.ContainsFunc(d.Plan.Summary, func(s string) bool {
			return strings.HasSuffix(s, ": "+a.Reason)
		}) {
			out = append(out, because)
		}
		if c := d.Proposal.Canary; c != nil && c.Candidate == a.BuildID && c.Problem == "" &&
			c.CandidateCounts.Closed > 0 {
			judged := "failed: " + failed(c.CandidateCounts)
			if c.Against != "" && c.AgainstCounts.Closed > 0 {
				judged += fmt.Sprintf(", against %s on %s", failed(c.AgainstCounts), c.Against)
			}
			out = append(out, judged)
		}
	}
	for _, f := range d.Plan.Verdicts.Actions[a.ID].Findings {
		if f.Waived != "" {
			out = append(out, fmt.Sprintf("waived %s: %s; by %s", f.Rule, f.Message, f.Waived))
		}
	}
	return out
}

// failed is a rate and what it is of.
func failed(n rollout.ArmCounts) string { return rollout.RateOf(n.Failed, n.Closed) }

// cut shortens text to n runes.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
