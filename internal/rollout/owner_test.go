package rollout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBelongsToOther(t *testing.T) {
	require.True(t, BelongsToOther("theirs", "ours"))
	require.True(t, BelongsToOther("theirs", ""))
	require.False(t, BelongsToOther("ours", "ours"))
	require.False(t, BelongsToOther("", "ours"))
}
