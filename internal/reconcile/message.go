package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// message is what a commit says: for people. Nothing in it is ever relied on.
func message(env string, changed []Decision) string {
	var b strings.Builder
	switch len(changed) {
	case 0:
		fmt.Fprintf(&b, "rampart(%s): list worker deployments\n", line(env))
		return b.String()
	case 1:
		fmt.Fprintf(&b, "rampart(%s): %s: %s\n", line(env), changed[0].Plan.Deployment, cut(line(changed[0].Plan.Summary[0]), 100))
	default:
		fmt.Fprintf(&b, "rampart(%s): %d worker deployments\n", line(env), len(changed))
	}
	policies := map[string]bool{}
	for _, d := range changed {
		fmt.Fprintf(&b, "\n%s\n", d.Plan.Deployment)
		for _, s := range d.Plan.Summary {
			fmt.Fprintf(&b, "  %s\n", cut(line(s), 400))
		}
		for _, a := range d.Plan.Actions {
			if a.Reason != "" && a.Routes() {
				fmt.Fprintf(&b, "  because %s\n", cut(line(a.Reason), 400))
			}
		}
		policies[d.Plan.PolicyHash] = true
	}
	b.WriteString("\n")
	for _, d := range changed {
		if st := d.Plan.Status; st != nil && st.Decision != nil {
			fmt.Fprintf(&b, "Rampart-Spec: %s %s\n", d.Plan.Deployment, line(st.Decision.SpecDigest))
		}
	}
	for _, p := range sorted(policies) {
		if p != "" {
			fmt.Fprintf(&b, "Rampart-Policy: %s\n", line(p))
		}
	}
	return b.String()
}

// line makes text from specs and policies one line without control characters, so that it cannot forge a trailer.
func line(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s)
}

// cut shortens text to n runes.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
