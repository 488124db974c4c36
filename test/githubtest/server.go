// Package githubtest is a server that stands for GitHub Enterprise in tests. It keeps state as GitHub does, in a real
// Git repository, and fails its test on any request or reply that is not in what GitHub publishes of its API: the
// OpenAPI document, and the GraphQL schema. What is in testdata was taken from there by make github-api.
//
// It may be used by several goroutines.
package githubtest

import (
	_ "embed"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rampart-gitops/rampart/test/forgetest"
)

//go:embed testdata/openapi.json
var document []byte

const (
	prefix   = "/api/v3"
	repoID   = 1296269
	docs     = "https://docs.github.com/rest"
	notFound = "Not Found"
)

// Server is a GitHub with one repository.
type Server struct {
	*forgetest.World
	*forgetest.Server
}

// Start starts one, with a repository acme/workers.
func Start(tb testing.TB) *Server {
	tb.Helper()
	// GitHub documents these for all operations: "Troubleshooting the REST API" and "Rate limits for the REST API".
	contract, err := forgetest.LoadContract(document, map[int]string{
		http.StatusUnauthorized: "basic-error", http.StatusForbidden: "basic-error", http.StatusNotFound: "basic-error",
		http.StatusUnprocessableEntity: "validation-error", http.StatusTooManyRequests: "basic-error",
	})
	if err != nil {
		tb.Fatal(err)
	}
	w := forgetest.NewWorld(tb, "acme", "workers")
	return &Server{w, forgetest.Serve(tb, w, forgetest.Config{
		Contract: contract, Prefix: prefix, Refuse: refuse, Around: moved(w), Operations: operations(),
		Plain: map[string]forgetest.Operation{"POST /api/graphql": graph},
	})}
}

func operations() map[string]forgetest.Operation {
	all := map[string]forgetest.Operation{
		"GET /repos/{owner}/{repo}":                                          getRepository,
		"GET /repos/{owner}/{repo}/collaborators/{username}/permission":      getPermission,
		"GET /repos/{owner}/{repo}/commits/{ref}":                            getCommit,
		"GET /repos/{owner}/{repo}/commits/{ref}/status":                     getStatuses,
		"GET /repos/{owner}/{repo}/hooks":                                    listHooks,
		"GET /repos/{owner}/{repo}/rules/branches/{branch}":                  listRules,
		"GET /repos/{owner}/{repo}/rulesets/{ruleset_id}":                    getRuleset,
		"GET /repos/{owner}/{repo}/issues/{issue_number}":                    getIssue,
		"POST /repos/{owner}/{repo}/issues/{issue_number}/comments":          createComment,
		"POST /repos/{owner}/{repo}/issues/{issue_number}/labels":            writing(addLabels),
		"POST /repos/{owner}/{repo}/labels":                                  writing(createLabel),
		"GET /repos/{owner}/{repo}/labels/{name}":                            getLabel,
		"GET /repos/{owner}/{repo}/pulls":                                    listPulls,
		"POST /repos/{owner}/{repo}/pulls":                                   writing(createPull),
		"GET /repos/{owner}/{repo}/pulls/{pull_number}":                      getPull,
		"PATCH /repos/{owner}/{repo}/pulls/{pull_number}":                    writing(updatePull),
		"PUT /repos/{owner}/{repo}/pulls/{pull_number}/merge":                writing(mergePull),
		"POST /repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers": writing(requestReviewers),
		"GET /repos/{owner}/{repo}/pulls/{pull_number}/reviews":              listReviews,
		"POST /repos/{owner}/{repo}/statuses/{sha}":                          writing(createStatus),
	}
	for pattern, operation := range all {
		all[pattern] = inRepository(operation)
	}
	return all
}

// moved leads from the name that the repository had to the one that it has, as GitHub does: by its number.
func moved(w *forgetest.World) func(http.Handler) http.Handler {
	byID := fmt.Sprintf("%s/repositories/%d", prefix, repoID)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			var old, now string
			w.Do(func(s *forgetest.State) {
				old, now = prefix+"/repos/"+s.Renamed(), prefix+"/repos/"+s.Owner+"/"+s.Name
			})
			if rest, is := strings.CutPrefix(r.URL.EscapedPath(), old); is && old != prefix+"/repos/" {
				code := http.StatusMovedPermanently
				if r.Method != http.MethodGet {
					code = http.StatusTemporaryRedirect
				}
				to := byID + rest
				if r.URL.RawQuery != "" {
					to += "?" + r.URL.RawQuery
				}
				http.Redirect(rw, r, to, code)
				return
			}
			if rest, is := strings.CutPrefix(r.URL.Path, byID); is {
				r = r.Clone(r.Context())
				r.URL.Path, r.URL.RawPath = now+rest, ""
			}
			next.ServeHTTP(rw, r)
		})
	}
}

func refuse(status int, why string) forgetest.Reply {
	return forgetest.Reply{Status: status, Body: map[string]any{
		"message": why, "documentation_url": docs,
	}}
}

// invalid is an answer to what makes no sense.
func invalid(resource, field, code, message string) forgetest.Reply {
	problem := map[string]any{"resource": resource, "code": code}
	if field != "" {
		problem["field"] = field
	}
	if message != "" {
		problem["message"] = message
	}
	return forgetest.Reply{Status: http.StatusUnprocessableEntity, Body: map[string]any{
		"message": "Validation Failed", "documentation_url": docs, "errors": []any{problem},
	}}
}

// inRepository answers only for the repository that there is, to those who may see it.
func inRepository(operation forgetest.Operation) forgetest.Operation {
	return func(c *forgetest.Call) forgetest.Reply {
		if c.Param("owner") != c.Owner || c.Param("repo") != c.Name || c.Rules().Private && c.By.Guest {
			return refuse(http.StatusNotFound, notFound)
		}
		for _, name := range []string{"pull_number", "issue_number"} {
			if c.Param(name) != "" && c.Pull(c.Number(name)) == nil {
				return refuse(http.StatusNotFound, notFound)
			}
		}
		return operation(c)
	}
}

func writing(operation forgetest.Operation) forgetest.Operation {
	return func(c *forgetest.Call) forgetest.Reply {
		if !c.By.Write {
			return refuse(http.StatusForbidden, "Must have push access to the repository.")
		}
		return operation(c)
	}
}
