package temporal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAtLeast(t *testing.T) {
	for version, ok := range map[string]bool{
		"1.32.0": true, "1.33.0-150.1": true, "2.0": true, "1.31.9": false, "0.40.0": false, "": false, "dev": false,
	} {
		if err := atLeast(version, 1, 32); ok {
			require.NoError(t, err, version)
		} else {
			require.ErrorContains(t, err, "needs Temporal 1.32", version)
		}
	}
}
