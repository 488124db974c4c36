package github

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	gh "github.com/google/go-github/v88/github"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// question is what is asked in GraphQL.
type question struct {
	Query     string         `json:"query"`
	Variables map[string]any `json:"variables,omitempty"`
}

// refusal is what GraphQL answers where it does not do what was asked for, beside HTTP 200.
type refusal struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// graphqlURL is where GraphQL is: beside the REST API, not below it.
func graphqlURL(api string) string { return strings.TrimSuffix(api, "/v3") + "/graphql" }

// graphql asks a question, through the client of the REST API.
func (f *Forge) graphql(ctx context.Context, c call, q question, into any) error {
	req, err := f.api.NewRequest(ctx, http.MethodPost, graphqlURL(f.repo.API()), q)
	if err != nil {
		return f.fail(c, nil, err)
	}
	var answer struct {
		Data   json.RawMessage `json:"data"`
		Errors []refusal       `json:"errors"`
	}
	resp, err := f.api.Do(req, &answer)
	if err != nil {
		return f.fail(c, resp, err)
	}
	if len(answer.Errors) > 0 {
		return f.refused(c, resp, answer.Errors[0])
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		return f.fail(c, resp, err)
	}
	return nil
}

func (f *Forge) refused(c call, resp *gh.Response, r refusal) error {
	e := &forge.RefusedError{Op: c.op, Where: f.repo.URL(), Said: f.client.Said(r.Message)}
	switch r.Type {
	case "RATE_LIMITED", "RATE_LIMIT":
		return f.client.Pause(resp.Response)
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		e.Reason, e.Need = forge.ReasonForbidden, c.need
	case "NOT_FOUND":
		e.Reason, e.Need = forge.ReasonNotFound, c.need
	case "UNPROCESSABLE", "STALE_DATA":
		e.Reason = forge.ReasonConflict
	case "":
		return &forge.UnavailableError{Op: c.op, Where: f.repo.URL(), Said: e.Said} // "Something went wrong …"
	default:
		e.Reason = forge.ReasonInvalid
	}
	return e
}
