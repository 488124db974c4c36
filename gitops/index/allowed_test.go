package index

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseNamespaceRule(t *testing.T) {
	r, err := ParseNamespaceRule("dev*=team-*")
	require.NoError(t, err)
	require.Equal(t, Rule{"dev*", "team-*"}, r)
	for _, text := range []string{"", "dev", "=x", "dev=", "de[v=x", "dev=[x"} {
		_, err := ParseNamespaceRule(text)
		require.ErrorContains(t, err, "not of the form", text)
	}
	require.True(t, allows(nil, "any", "thing"))
	require.False(t, allows([]Rule{{"dev", "a"}}, "prod", "a"))
}
