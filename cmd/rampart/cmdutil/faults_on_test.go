//go:build faults

package cmdutil

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/temporal"
)

func TestParseFault(t *testing.T) {
	for text, want := range map[string]string{
		"push:before":        "",
		"SetCurrent:After:3": "",
		"push":               `"push" is not site:moment[:n]`,
		"push:before:1:2":    `is not site:moment[:n]`,
		"nowhere:before":     `there is no site "nowhere"`,
		"push:during":        "the moment is before or after",
		"push:before:0":      "want a number from 1",
		"push:before:x":      "want a number from 1",
	} {
		_, err := parseFault(text)
		if want == "" {
			require.NoError(t, err, text)
		} else {
			require.ErrorContains(t, err, want, text)
		}
	}
}

func TestFaultSitesAreAllSites(t *testing.T) {
	require.Len(t, faultSites(), len(temporal.Sites())+2)
	require.Subset(t, faultSites(), []string{sitePush, siteDecisions})
}
