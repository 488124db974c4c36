// Package gitlabtest is a server that stands for a GitLab in tests. It keeps state as GitLab does, in a real Git
// repository, and fails its test on any request or reply that is not in testdata/gitlab.yaml, which was written down
// from GitLab's documentation.
//
// It may be used by several goroutines.
package gitlabtest

import (
	_ "embed"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/rampart-gitops/rampart/test/forgetest"
)

//go:embed testdata/gitlab.yaml
var document []byte

const (
	prefix    = "/api/v4"
	projectID = 278964
	denied    = "403 Forbidden"
)

// Server is a GitLab with one project.
type Server struct {
	*forgetest.World
	*forgetest.Server
}

// Start starts one, with a project workers in a group in a group in a group.
func Start(tb testing.TB) *Server {
	tb.Helper()
	// GitLab documents these for all operations: docs.gitlab.com/api/rest/troubleshooting and …/rest/authentication.
	contract, err := forgetest.LoadContract(document, map[int]string{
		http.StatusBadRequest: "refused", http.StatusUnauthorized: "refused", http.StatusForbidden: "refused",
		http.StatusNotFound: "refused", http.StatusTooManyRequests: "refused",
	})
	if err != nil {
		tb.Fatal(err)
	}
	w := forgetest.NewWorld(tb, "acme/platform/payments", "workers")
	return &Server{w, forgetest.Serve(tb, w, forgetest.Config{
		Contract: contract, Prefix: prefix, Refuse: refuse, Around: moved(w), Operations: operations(),
	})}
}

func operations() map[string]forgetest.Operation {
	const request = "/projects/{id}/merge_requests/{merge_request_iid}"
	all := map[string]forgetest.Operation{
		"GET /projects/{id}":                                       getProject,
		"GET /projects/{id}/hooks":                                 listHooks,
		"GET /projects/{id}/repository/branches/{branch}":          getBranch,
		"POST /projects/{id}/labels":                               writing(createLabel),
		"GET /projects/{id}/labels/{label_id}":                     getLabel,
		"POST /projects/{id}/statuses/{sha}":                       writing(createStatus),
		"GET /projects/{id}/repository/commits/{sha}/statuses":     listStatuses,
		"GET /projects/{id}/repository/commits/{sha}":              getCommit,
		"GET /projects/{id}/merge_requests":                        list,
		"POST /projects/{id}/merge_requests":                       writing(create),
		"GET " + request:                                           get,
		"PUT " + request:                                           writing(update),
		"PUT " + request + "/merge":                                merge,
		"POST " + request + "/cancel_merge_when_pipeline_succeeds": cancel,
		"POST " + request + "/notes":                               createNote,
		"GET " + request + "/approvals":                            approvals,
	}
	for pattern, operation := range all {
		all[pattern] = inProject(operation)
	}
	all["GET /personal_access_tokens/self"] = getToken
	all["GET /user"], all["GET /users"], all["GET /users/{id}"] = getUser, listUsers, getUserByID
	return all
}

// moved leads from the path that the project had to the one that it has, where something is read.
func moved(w *forgetest.World) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			var old, now string
			w.Do(func(s *forgetest.State) {
				old, now = prefix+"/projects/"+url.PathEscape(s.Renamed()),
					prefix+"/projects/"+url.PathEscape(s.Owner+"/"+s.Name)
			})
			rest, is := strings.CutPrefix(r.URL.EscapedPath(), old)
			switch {
			case !is || old == prefix+"/projects/":
				next.ServeHTTP(rw, r)
			case r.Method != http.MethodGet:
				rw.WriteHeader(http.StatusMethodNotAllowed)
				_, _ = rw.Write(
					[]byte(`{"message":"405 Method Not Allowed: Non GET methods are not allowed for moved projects"}`))
			default:
				http.Redirect(rw, r, now+rest+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
			}
		})
	}
}

func refuse(status int, why string) forgetest.Reply {
	if status == http.StatusForbidden && why != denied {
		return forgetest.Reply{Status: status, Body: map[string]any{
			"error": "insufficient_scope", "error_description": "The request requires higher privileges than " +
				"provided by the access token.", "scope": "api",
		}}
	}
	if status == http.StatusUnauthorized {
		why = "401 Unauthorized"
	}
	return forgetest.Reply{Status: status, Body: map[string]any{"message": why}}
}

func ok(body any) forgetest.Reply { return forgetest.Reply{Status: http.StatusOK, Body: body} }

func created(body any) forgetest.Reply {
	return forgetest.Reply{Status: http.StatusCreated, Body: body}
}

// inProject answers only for the project that there is, by its number or its path, to those who may see it.
func inProject(operation forgetest.Operation) forgetest.Operation {
	return func(c *forgetest.Call) forgetest.Reply {
		id := c.Param("id")
		if id != strconv.Itoa(projectID) && id != c.Owner+"/"+c.Name || c.Rules().Private && c.By.Guest {
			return refuse(http.StatusNotFound, "404 Project Not Found")
		}
		if c.Param("merge_request_iid") != "" && c.Pull(c.Number("merge_request_iid")) == nil {
			return refuse(http.StatusNotFound, "404 Not found")
		}
		return operation(c)
	}
}

func writing(operation forgetest.Operation) forgetest.Operation {
	return func(c *forgetest.Call) forgetest.Reply {
		if !c.By.Write {
			return refuse(http.StatusForbidden, denied)
		}
		return operation(c)
	}
}
