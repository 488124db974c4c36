package forge_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/gitops/forge/gitea"
	"github.com/rampart-gitops/rampart/gitops/forge/github"
	"github.com/rampart-gitops/rampart/gitops/forge/gitlab"
)

// adapter is one of the adapters, and what its forge answers.
type adapter struct {
	kind forge.Kind
	open func(forge.Config) (forge.Forge, error)
	// login is the account. Project is what else is asked for before pull requests, pull is one by its number, and
	// reviews is asked for after it.
	login         string
	project       []string
	pull, reviews string
}

var (
	onGitHub = adapter{
		kind: forge.KindGitHub, open: func(c forge.Config) (forge.Forge, error) { return github.New(c) },
		login: `{"data":{"viewer":{"login":"bot","databaseId":1}}}`,
		pull: `{"number":%d,"title":"t","state":"closed","merged":true,"merged_at":"2026-01-01T00:00:00Z","merge_commit_sha":"a","user":{"id":1,"login":"bot"},` +
			`"head":{"ref":"rampart/prod/shop/checkout","sha":"b","repo":{"id":3,"full_name":"acme/workers"}},` +
			`"base":{"ref":"main","repo":{"id":3,"full_name":"acme/workers"}},"labels":[{"name":"x"}]}`,
		reviews: `[{"id":1,"state":"APPROVED","user":{"id":2,"login":"sam"},"commit_id":"b"}]`,
	}
	onGitLab = adapter{
		kind: forge.KindGitLab, open: func(c forge.Config) (forge.Forge, error) { return gitlab.New(c) },
		login: `{"id":1,"username":"bot"}`, project: []string{`{"id":3}`},
		pull: `{"iid":%d,"title":"t","state":"merged","source_project_id":3,"target_project_id":3,"source_branch":"rampart/prod/shop/checkout",` +
			`"target_branch":"main","sha":"b","merge_commit_sha":"a","author":{"id":1,"username":"bot"},"merge_user":{"id":1,"username":"bot"},"labels":["x"]}`,
		reviews: `{"approved_by":[{"user":{"id":2,"username":"sam"}}]}`,
	}
	onGitea = adapter{
		kind: forge.KindGitea, open: func(c forge.Config) (forge.Forge, error) { return gitea.New(c) },
		login: `{"id":1,"login":"bot"}`,
		pull: `{"number":%d,"title":"t","state":"closed","merged":true,"merge_commit_sha":"a","user":{"id":1,"login":"bot"},` +
			`"head":{"ref":"rampart/prod/shop/checkout","sha":"b","repo_id":3},"base":{"ref":"main","repo_id":3},"merged_by":{"id":1,"login":"bot"},` +
			`"labels":[{"name":"x"}],"updated_at":"2026-01-01T00:00:00Z"}`,
		reviews: `[{"id":1,"state":"APPROVED","user":{"id":2,"login":"sam"},"commit_id":"b","submitted_at":"2026-01-01T00:00:00Z"}]`,
	}
)

// answer is what a forge says to a request.
type answer struct {
	status     int
	next, body string
}

type answered func(*http.Request) answer

// RoundTrip implements http.RoundTripper.
func (a answered) RoundTrip(req *http.Request) (*http.Response, error) {
	is := a(req)
	header := http.Header{"Link": {is.next}, "X-Next-Page": {is.next}, "X-Total-Count": {strconv.Itoa(len(is.body))},
		"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: is.status, Status: strconv.Itoa(is.status), Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1, Request: req, Header: header, Body: io.NopCloser(strings.NewReader(is.body)),
		ContentLength: int64(len(is.body))}, nil
}

// on is the adapter on a forge that answers so.
func (a adapter) on(t *testing.T, answers answered) forge.Forge {
	t.Helper()
	at := forge.Repository{Kind: a.kind, Base: "https://forge.example", Owner: "acme", Name: "workers"}
	on, err := a.open(forge.Config{Repository: at, Token: func(context.Context) (string, error) { return "a-token", nil },
		HTTP: &http.Client{Transport: answers}})
	require.NoError(t, err)
	return forge.Contained(on)
}

// A list that goes on for ever ends with an error that says how many were read.
func TestTooMany(t *testing.T) {
	for _, a := range []adapter{onGitHub, onGitLab, onGitea} {
		asked, most := 0, 0
		on := a.on(t, func(req *http.Request) answer {
			if asked++; asked <= len(a.project) {
				return answer{status: http.StatusOK, body: a.project[asked-1]}
			}
			page, err := strconv.Atoi(cmp.Or(req.URL.Query().Get("per_page"), req.URL.Query().Get("limit")))
			require.NoError(t, err)
			most += page
			next := strconv.Itoa(asked)
			if a.kind != forge.KindGitLab {
				next = fmt.Sprintf(`<https://forge.example%s?page=%d>; rel="next"`, req.URL.Path, asked)
			}
			return answer{http.StatusOK, next, "[" + fmt.Sprintf(a.pull, asked) + "]"}
		})
		_, err := on.List(t.Context(), forge.Filter{})
		var many *forge.TooManyError
		require.ErrorAs(t, err, &many, a.kind)
		require.Equal(t, 10_000, most, a.kind)
		require.Equal(t, most, many.Most, a.kind)
	}
}

func FuzzGitHub(f *testing.F) { onGitHub.fuzz(f) }
func FuzzGitLab(f *testing.F) { onGitLab.fuzz(f) }
func FuzzGitea(f *testing.F)  { onGitea.fuzz(f) }

// mostQuestions is how many requests one call may take at most: its pages, and what it asks beside them.
const mostQuestions = 250

// fuzz lets a forge answer anything, one body after the other and then from the first again. Reading pull requests ends
// with an error or with what a caller can rely on, after so many requests at most. A line of "---" separates the
// bodies. Where a library panics, forge.Contained makes an error of it.
func (a adapter) fuzz(f *testing.F) {
	pull := fmt.Sprintf(a.pull, 7)
	for _, bodies := range [][]string{{a.login, pull, a.reviews}, {"[" + pull + "," + pull + "]"}, {"[null]"}, {"null"}} {
		at := len(bodies) / 2 // after the login, where there is one
		bodies = slices.Insert(bodies, at, a.project...)
		seed := []byte(strings.Join(bodies, "\n---\n"))
		f.Add(seed, "", 200)
		f.Add(seed, `<https://forge.example/x?page=2>; rel="next"`, 200)
		f.Add(seed, "2", 404)
	}
	f.Fuzz(func(t *testing.T, bodies []byte, next string, status int) {
		inTurn := bytes.Split(bodies, []byte("\n---\n"))
		on := func() forge.Forge {
			asked := 0
			return a.on(t, func(req *http.Request) answer {
				if asked++; asked > mostQuestions {
					t.Fatalf("asked more than %d questions, and now %s", mostQuestions, req.URL)
				}
				code := http.StatusOK
				if asked > 1 && status >= 200 && status < 600 {
					code = status
				}
				return answer{code, next, string(inTurn[(asked-1)%len(inTurn)])}
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if d, err := on().Get(ctx, 7); err == nil {
			reliable(t, d.PullRequest)
		}
		all, err := on().List(ctx, forge.Filter{Head: "rampart/prod/shop/checkout"})
		for _, p := range all {
			reliable(t, p)
		}
		if statuses, err := on().Statuses(ctx, "8f3c"); err == nil {
			for _, s := range statuses {
				if s.State == "" {
					t.Fatalf("the status %q has no state", s.Context)
				}
			}
		}
		if err == nil && ctx.Err() != nil {
			t.Fatal("it took more than 20 seconds")
		}
	})
}

// reliable is what no caller looks at again.
func reliable(t *testing.T, p forge.PullRequest) {
	t.Helper()
	if p.State != forge.StateOpen && p.State != forge.StateMerged && p.State != forge.StateClosed {
		t.Fatalf("state %q", p.State)
	}
	if p.State != forge.StateMerged && p.MergeCommit != "" {
		t.Fatalf("%s, with the merge commit %s", p.State, p.MergeCommit)
	}
}
