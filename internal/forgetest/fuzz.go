package forgetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// mostQuestions is how many requests one call may take at most: its pages, and what it asks beside them.
const mostQuestions = 250

// FuzzAnswers lets a forge answer anything, one body after the other and then from the first again: reading pull requests ends with an error
// or with what a caller can rely on, after so many requests at most. Separate bodies by a line of "---"; seeds are in
// the order of an adapter's questions. Where its library panics, forge.Contained makes an error of it.
func FuzzAnswers(f *testing.F, open func(forge.Config) (forge.Forge, error), kind forge.Kind, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed), "", 200)
		f.Add([]byte(seed), `<https://forge.example/x?page=2>; rel="next"`, 200)
		f.Add([]byte(seed), "2", 404)
	}
	f.Fuzz(func(t *testing.T, bodies []byte, next string, status int) {
		asked := 0
		answers := bytes.Split(bodies, []byte("\n---\n"))
		answer := func(req *http.Request) (*http.Response, error) {
			if asked++; asked > mostQuestions {
				t.Fatalf("asked more than %d questions, and now %s", mostQuestions, req.URL)
			}
			code := http.StatusOK
			if asked > 1 && status >= 200 && status < 600 {
				code = status
			}
			body := answers[(asked-1)%len(answers)]
			return &http.Response{StatusCode: code, Status: fmt.Sprint(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
				Header: http.Header{"Link": {next}, "X-Next-Page": {next}, "X-Total-Count": {strconv.Itoa(len(body))}, "Content-Type": {"application/json"}},
				Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}, nil
		}
		at := forge.Repository{Kind: kind, Base: "https://forge.example", Owner: "acme", Name: "workers"}
		adapter, err := open(forge.Config{Repository: at, Token: func(context.Context) (string, error) { return "t", nil },
			HTTP: &http.Client{Transport: answered(answer)}})
		if err != nil {
			t.Fatal(err)
		}
		on := forge.Contained(adapter)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if d, err := on.Get(ctx, 7); err == nil {
			reliable(t, d.PullRequest)
		}
		asked = 0
		all, err := on.List(ctx, forge.Filter{Head: "rampart/prod/shop/checkout"})
		for _, p := range all {
			reliable(t, p)
		}
		asked = 0
		if statuses, err := on.Statuses(ctx, "8f3c"); err == nil {
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

type answered func(*http.Request) (*http.Response, error)

func (a answered) RoundTrip(req *http.Request) (*http.Response, error) { return a(req) }
