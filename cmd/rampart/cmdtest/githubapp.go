package cmdtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/keytest"
)

// GitHubServer is GitHub as far as logging in goes: its API gives tokens, and its Git takes only the last one.
type GitHubServer struct {
	URL, KeyFile string

	mu    sync.Mutex
	Given int
}

// NewGitHubServer starts a server for a repository, which is stopped when the test ends, and writes the key of an App.
func NewGitHubServer(t *testing.T, r *gittest.Repo) *GitHubServer {
	t.Helper()
	s := &GitHubServer{KeyFile: filepath.Join(t.TempDir(), "key.pem")}
	_, text := keytest.RSA(t)
	require.NoError(t, os.WriteFile(s.KeyFile, []byte(text), 0o600))
	server := gittest.ServeHTTP(t, r, gittest.HTTPConfig{Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { s.serve(w, req, next) })
	}})
	s.URL = strings.TrimSuffix(server.URL, "/repo.git") + "/acme/repo.git"
	return s
}

func (s *GitHubServer) serve(w http.ResponseWriter, req *http.Request, repositories http.Handler) {
	s.mu.Lock()
	given := s.Given
	s.mu.Unlock()
	switch req.URL.Path {
	case "/api/v3/repos/acme/repo/installation":
		_ = json.NewEncoder(w).Encode(map[string]int{"id": 42})
	case "/api/v3/app/installations/42/access_tokens":
		s.End()
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"token": fmt.Sprintf("ghs_t0ken%d", given+1),
			"expires_at": time.Now().Add(time.Hour)})
	default:
		if user, password, _ := req.BasicAuth(); user != git.DefaultTokenUser ||
			password != fmt.Sprintf("ghs_t0ken%d", given) {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "Bad credentials", http.StatusUnauthorized)
			return
		}
		http.StripPrefix("/acme", repositories).ServeHTTP(w, req)
	}
}

// End ends the token before its time.
func (s *GitHubServer) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Given++
}
