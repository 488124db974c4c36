package auditlog_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/auditlog"
)

// A token of a known format is masked wherever it is, also where nothing beside it says what it is. What only looks a
// little like one is not.
func TestTokensAreKnownByTheirFormats(t *testing.T) {
	long := strings.Repeat("aB3x", 12)
	tokens := []string{"ghp_" + long, "ghs_" + long, "github_pat_" + long, "glpat-" + long, "gldt-" + long, "AKIA" + "ABCDEFGHIJ234567", "ASIA" + "ABCDEFGHIJ234567",
		"AIza" + strings.Repeat("x", 35), "ya29." + long, "xoxb-" + long, "xapp-1-" + long, "sk_live_" + long, "rk_test_" + long, "npm_" + long, "pypi-" + long, "dckr_pat_" + long,
		"hooks.slack.com/services/T0/B0/" + long, "GOCSPX-" + long, "AGE-SECRET-KEY-1" + strings.ToUpper(long), "AccountKey=" + long,
		"hvs." + long, "sk-ant-" + long, "SG." + long + "." + long, "glsa_" + long, "hf_" + long, "dop_v1_" + long,
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0." + long,
		"-----BEGIN RSA PRIVATE KEY-----\n" + long + "\n-----END RSA PRIVATE KEY-----"}
	places := []string{
		`,"metadata":{"labels":{"id":"SECRET"}}`, `,"metadata":{"annotations":{"note":"we use SECRET, for now"}}`, spec(`"containers":[{"args":["SECRET"]}]`),
		spec(`"containers":[{"command":["sh","-c","run SECRET"]}]`), `},"git":{"message":"try (SECRET)"`,
	}
	m := masker(t)
	written := func(place, text string) (string, []string) {
		quoted, err := json.Marshal(text)
		require.NoError(t, err)
		d, err := auditlog.NewDecision(judged(strings.ReplaceAll(planted(place), "SECRET", string(quoted[1:len(quoted)-1])), "it is "+strings.ReplaceAll(text, "\n", " ")), m)
		require.NoError(t, err)
		var lines bytes.Buffer
		require.NoError(t, auditlog.WriteLines(&lines, d))
		return lines.String(), d.Masked
	}
	for _, token := range tokens {
		for _, place := range places {
			if strings.HasPrefix(token, "-----") && strings.Contains(place, "labels") {
				continue
			}
			text, masked := written(place, token)
			require.NotEmpty(t, masked, "%s in %s", token, place)
			require.NotContains(t, text, long, "%s in %s", token, place)
			require.NotContains(t, text, "ABCDEFGHIJ234567", "%s in %s", token, place)
		}
	}
	for _, fine := range []string{"sha256:" + strings.Repeat("0af3", 16), "task-sk-lists-and-more", "AKIA", "npm_config", "eyJ", "the-ghp_x", "0123456789abcdef0123456789abcdef01234567"} {
		_, masked := written(places[0], fine)
		require.Empty(t, masked, fine)
	}
}
