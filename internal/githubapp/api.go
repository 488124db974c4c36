package githubapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	gh "github.com/google/go-github/v88/github"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// question is one request to the API.
type question struct {
	op    string
	needs map[int]string // what helps, by the status of the answer
}

// findInstallation asks for the installation on the repository.
func (s *Source) findInstallation(ctx context.Context) (int64, error) {
	repo := s.cfg.Owner + "/" + s.cfg.Repo
	q := question{"find the GitHub App's installation", map[int]string{
		http.StatusNotFound: "install the App on " + repo + ", or check that the repository exists"}}
	found, err := ask(ctx, s, q, func(apps *gh.AppsService) (*gh.Installation, *gh.Response, error) {
		return apps.GetRepositoryInstallation(ctx, url.PathEscape(s.cfg.Owner), url.PathEscape(s.cfg.Repo))
	})
	if err == nil && found.GetID() <= 0 {
		err = s.client.Fail(forge.Failure{Op: q.op, Status: http.StatusOK, Said: "the answer has no id"})
	}
	return found.GetID(), err
}

// exchange gets a token of the installation, for the one repository where that is known.
func (s *Source) exchange(ctx context.Context) (string, time.Time, error) {
	q := question{"get a token of the GitHub App", map[int]string{
		http.StatusNotFound:            "check the installation's ID, and that it is this App's",
		http.StatusForbidden:           "the installation may be suspended",
		http.StatusUnprocessableEntity: "check that the installation may see the repository",
	}}
	var options gh.InstallationTokenOptions
	if s.cfg.Repo != "" {
		options.Repositories = []string{s.cfg.Repo}
	}
	got, err := ask(ctx, s, q, func(apps *gh.AppsService) (*gh.InstallationToken, *gh.Response, error) {
		return apps.CreateInstallationToken(ctx, s.installation, &options)
	})
	if err == nil && (got.GetToken() == "" || got.GetExpiresAt().IsZero()) {
		err = s.client.Fail(forge.Failure{Op: q.op, Status: http.StatusOK,
			Said: "the answer has no token, or no expires_at"})
	}
	return got.GetToken(), got.GetExpiresAt().Time, err
}

// ask puts a question as the App, with a proof of its own. Errors: those of the key; *forge.RefusedError,
// *forge.RateLimitError, *forge.UnavailableError.
func ask[T any](ctx context.Context, s *Source, q question,
	call func(*gh.AppsService) (T, *gh.Response, error)) (answer T, err error) {
	proof, err := s.proof(ctx)
	if err != nil {
		return answer, err
	}
	base := s.base + "/"
	api, err := gh.NewClient(gh.WithHTTPClient(s.client.HTTP), gh.WithURLs(&base, &base), gh.WithAuthToken(proof),
		gh.WithUserAgent("rampart"), gh.WithDisableRateLimitCheck())
	if err != nil {
		return answer, fmt.Errorf("%s: %w", q.op, err)
	}
	answer, resp, err := call(api.Apps)
	if err == nil {
		return answer, nil
	}
	failure := forge.Failure{Op: q.op, Err: err}
	var (
		second *gh.AbuseRateLimitError
		told   *gh.ErrorResponse
	)
	if resp != nil {
		failure.Status = resp.StatusCode
	}
	switch {
	case errors.As(err, &second):
		return answer, s.client.Pause(second.Response)
	case errors.As(err, &told): // what was sent may be in what comes back
		failure.Said = strings.ReplaceAll(cmp.Or(told.Message, http.StatusText(failure.Status)), proof, "***")
	case failure.Status != 0: // the decoder's error may repeat what it read
		failure.Said = "the answer is not the JSON that GitHub documents"
	}
	err = s.client.Fail(failure)
	var refused *forge.RefusedError
	if errors.As(err, &refused) {
		switch need := q.needs[refused.Status]; {
		case need != "":
			refused.Need = need
		case refused.Reason == forge.ReasonUnauthorized:
			refused.Need = "check the App's ID and key, and this machine's clock"
		}
	}
	return answer, err
}
