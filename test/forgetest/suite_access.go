package forgetest

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// A token that may only read reads, and is told what it lacks.
func testReadOnly(s *Site) {
	s.Allow(forge.MethodMerge)
	open := s.open(head)
	s.Branch("second")
	token := s.ReadToken(s.Bot)
	for name, err := range Everything(s.Context(), s.As(token), open.Number, open.HeadCommit) {
		if isRead(name) {
			require.NoError(s, err, name)
			continue
		}
		refused := refusedFor(s.T, err, forge.ReasonForbidden)
		require.Contains(s, refused.Need, "the token needs", name)
		require.NotContains(s, err.Error(), token)
	}
	p := s.Look(open.Number)
	require.Equal(s, Open, p.State)
	require.Empty(s, p.Labels)
	require.Empty(s, p.Comments)
}

// An account that may only read is told so, too. It may say something.
func testNoRight(s *Site) {
	s.Allow(forge.MethodMerge)
	open := s.open(head)
	s.Branch("second")
	for name, err := range Everything(s.Context(), s.As(s.Reader.Token), open.Number, open.HeadCommit) {
		// which lets readers propose
		if isRead(name) || name == "comment" || name == "open" && s.Kind == forge.KindGitea {
			require.NoError(s, err, name)
			continue
		}
		require.Error(s, err, name)
		require.NotEmpty(s, refusedFor(s.T, err, forge.ReasonForbidden).Need, name)
	}
	require.Equal(s, Open, s.Look(open.Number).State)
}

func testPrivate(s *Site) {
	open := s.open(head)
	s.SetRules(func(r *Rules) { r.Private = true })
	stranger := s.NewUser("stranger", Stranger)
	for name, err := range Everything(s.Context(), s.As(stranger.Token), open.Number, open.HeadCommit) {
		if name == "login" {
			require.NoError(s, err)
			continue
		}
		require.Contains(s, refusedFor(s.T, err, forge.ReasonNotFound).Need, "may see the repository", name)
	}
}

func testWrongToken(s *Site) {
	open := s.open(head)
	const wrong = "not/a+token-0123456789"
	for name, err := range Everything(s.Context(), s.As(wrong), open.Number, open.HeadCommit) {
		require.Contains(s, refusedFor(s.T, err, forge.ReasonUnauthorized).Need, "give a new one", name)
		require.NotContains(s, err.Error(), wrong)
	}
	// A proxy in between that repeats what it was sent.
	s.Front.SetBefore(func(rw http.ResponseWriter, r *http.Request) bool {
		rw.WriteHeader(http.StatusForbidden)
		_, _ = rw.Write([]byte(`{"message": "no: ` + r.Header.Get("Authorization") + ` ` + url.QueryEscape(wrong) +
			`"}`))
		return true
	})
	for name, err := range Everything(s.Context(), s.As(wrong), open.Number, open.HeadCommit) {
		require.ErrorContains(s, err, "(token)", name)
		require.NotContains(s, err.Error(), wrong, name)
		require.NotContains(s, err.Error(), url.QueryEscape(wrong), name)
	}
}

// While the forge wants to be left alone it is.
func testLeftAlone(s *Site) {
	open := s.open(head)
	var mu sync.Mutex
	now := time.Unix(1_700_000_000, 0)
	f, err := s.Make(forge.Config{
		Repository: s.Located(), Token: func(context.Context) (string, error) { return s.Bot.Token, nil },
		Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now },
	})
	require.NoError(s, err)
	_, err = f.Get(s.Context(), open.Number)
	require.NoError(s, err)
	s.Front.SetBefore(func(rw http.ResponseWriter, _ *http.Request) bool {
		rw.Header().Set("Retry-After", "90")
		rw.WriteHeader(http.StatusTooManyRequests)
		_, _ = rw.Write([]byte(`{"message": "Retry later"}`))
		return true
	})
	var limited *forge.RateLimitError
	_, err = f.Get(s.Context(), open.Number)
	require.ErrorAs(s, err, &limited)
	require.Equal(s, now.Add(90*time.Second), limited.Until)
	s.Front.SetBefore(nil)
	asked := s.Front.Asked()
	for name, err := range Everything(s.Context(), f, open.Number, open.HeadCommit) {
		if name != "login" { // who it is, is known
			require.ErrorAs(s, err, &limited, name)
		}
	}
	require.Equal(s, asked, s.Front.Asked())
	mu.Lock()
	now = limited.Until
	mu.Unlock()
	_, err = f.Get(s.Context(), open.Number)
	require.NoError(s, err)
}

// A forge that is away, or fails, may be asked again; it is asked once.
func testAway(s *Site) {
	open := s.open(head)
	_, err := s.Forge.Login(s.Context()) // known from now on
	require.NoError(s, err)
	s.Front.SetBefore(func(rw http.ResponseWriter, _ *http.Request) bool {
		rw.WriteHeader(http.StatusBadGateway)
		_, _ = rw.Write([]byte("<html>" + s.Bot.Token + strings.Repeat("x", 5000)))
		return true
	})
	var away *forge.UnavailableError
	asked := s.Front.Asked()
	for name, err := range Everything(s.Context(), s.Forge, open.Number, open.HeadCommit) {
		if name == "login" {
			continue
		}
		require.ErrorAs(s, err, &away, name)
		require.NotContains(s, err.Error(), s.Bot.Token)
		require.Less(s, len(err.Error()), 700)
	}
	questions := len(Everything(context.Background(), forge.None{}, 0, "")) - 1 // the login is known
	if s.Kind == forge.KindGitea {
		questions++ // labels are the organization's, and the repository's
	}
	require.Equal(s, asked+questions, s.Front.Asked(), "nothing is tried twice")
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	_, err = s.Forge.Get(ctx, open.Number)
	require.ErrorAs(s, err, &away)
	require.ErrorIs(s, err, context.Canceled)
}

// What the forge does not document fails: an address, a parameter, a field that is sent, one that is answered, a wrong
// type.
func testUndocumented(s *Site) {
	open := s.open(head)
	var mu sync.Mutex
	var problems []string
	s.Server.Report = func(problem string) { mu.Lock(); defer mu.Unlock(); problems = append(problems, problem) }
	api, pulls, title := s.Located().API(), "/repos/acme/workers/pulls", "title"
	if s.Kind == forge.KindGitLab {
		pulls = "/projects/" + url.PathEscape(s.Owner+"/"+s.Name) + "/merge_requests"
	}
	ask := func(method, path, body string) {
		s.Helper()
		req, err := http.NewRequestWithContext(s.Context(), method, api+path, strings.NewReader(body))
		require.NoError(s, err)
		req.Header.Set("Authorization", "Bearer "+s.Bot.Token)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(s, err)
		require.NoError(s, resp.Body.Close())
	}
	said := func(want string) {
		s.Helper()
		mu.Lock()
		defer mu.Unlock()
		require.NotEmpty(s, problems, want)
		require.Contains(s, strings.Join(problems, "\n"), want)
		problems = nil
	}
	patch := http.MethodPatch
	if s.Kind == forge.KindGitLab {
		patch = http.MethodPut
	}
	ask(http.MethodGet, "/nothing/here", "")
	said("nothing is documented at this address")
	ask(http.MethodGet, pulls+"?colour=red", "")
	said(`the parameter "colour" is not documented`)
	ask(patch, pulls+"/1", `{"title": "t", "colour": "red"}`)
	said("request: the field /colour is not documented")
	ask(patch, pulls+"/1", `{"title": 7}`)
	said("request: ")
	_, err := s.Forge.Get(s.Context(), open.Number)
	require.NoError(s, err)
	require.Empty(s, problems, "what is documented is no problem")

	s.Server.Mangle = func(_ string, body any) any {
		if fields, is := body.(map[string]any); is && fields[title] != nil {
			fields["colour"] = "red"
		}
		return body
	}
	_, err = s.Forge.Get(s.Context(), open.Number)
	require.NoError(s, err, "the library does not look at it")
	said("reply: the field /colour is not documented")
	s.Server.Mangle = func(_ string, body any) any {
		if fields, is := body.(map[string]any); is && fields[title] != nil {
			delete(fields, title)
		}
		return body
	}
	_, _ = s.Forge.Get(s.Context(), open.Number)
	said("reply: ")
	s.Server.Mangle = func(_ string, body any) any {
		if fields, is := body.(map[string]any); is && fields[title] != nil {
			fields["state"] = []any{}
		}
		return body
	}
	_, _ = s.Forge.Get(s.Context(), open.Number)
	said("reply: ")
}
