package forge

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What is opened while pages are read is listed once, and the newest comes first.
func TestNewestListsEachPullRequestOnce(t *testing.T) {
	require.Equal(t, []PullRequest{{Number: 9}, {Number: 7, Title: "as first read"}, {Number: 3}},
		Newest([]PullRequest{{Number: 7, Title: "as first read"}, {Number: 3}, {Number: 7}, {Number: 9}}))
}
