package githubtest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A query that does not fit GitHub's schema fails.
func TestQueriesOutsideTheSchemaFail(t *testing.T) {
	s := Start(t)
	var problems []string
	s.Report = func(problem string) { problems = append(problems, problem) }
	for _, query := range []string{
		`query { viewer { colour } }`, `mutation($id: ID!) { closeEverything(input: {id: $id}) { ok } }`,
		`mutation { disablePullRequestAutoMerge(input: {pullRequestId: 7.5}) { pullRequest { number } } }`,
	} {
		body, err := json.Marshal(map[string]string{"query": query})
		require.NoError(t, err)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/api/graphql", strings.NewReader(string(body)))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+s.Bot.Token)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusBadRequest, resp.StatusCode, query)
	}
	require.Len(t, problems, 3)
}
