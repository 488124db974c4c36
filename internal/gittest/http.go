package gittest

import (
	"bytes"
	"crypto/subtle"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// HTTPConfig is how to serve a repository. The zero value serves it to everybody without TLS.
type HTTPConfig struct {
	User, Password string                          // basic authentication when set
	TLS            bool                            // with a certificate that no system trusts: see HTTPServer.CAFile
	Wrap           func(http.Handler) http.Handler // between the server and git; may be nil
}

// HTTPServer is git http-backend on loopback.
type HTTPServer struct {
	URL    string // of the repository
	CAFile string // PEM; empty without TLS
}

// ServeHTTP serves a repository until the test ends.
func ServeHTTP(tb testing.TB, r *Repo, c HTTPConfig) *HTTPServer {
	tb.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		tb.Fatalf("git is needed: %v", err)
	}
	var handler http.Handler = &cgi.Handler{
		Path: git,
		Args: []string{"http-backend"},
		Env:  append(Env(), "GIT_PROJECT_ROOT="+filepath.Dir(r.Dir), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=tester"),
	}
	handler = whole(handler)
	if c.Password != "" {
		handler = basicAuth(handler, c)
	}
	if c.Wrap != nil {
		handler = c.Wrap(handler)
	}
	server := httptest.NewUnstartedServer(handler)
	s := &HTTPServer{}
	if c.TLS {
		server.StartTLS()
		s.CAFile = filepath.Join(tb.TempDir(), "ca.pem")
		cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		if err := os.WriteFile(s.CAFile, cert, 0o600); err != nil {
			tb.Fatal(err)
		}
	} else {
		server.Start()
	}
	tb.Cleanup(server.Close)
	s.URL = server.URL + "/" + filepath.Base(r.Dir)
	return s
}

// whole gives git a request once all of it is there, as servers before it do. Otherwise git http-backend reads on for
// ever where a body ends early.
func whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the client is gone
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, req)
	})
}

func basicAuth(next http.Handler, c HTTPConfig) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		user, password, _ := req.BasicAuth()
		if subtle.ConstantTimeCompare([]byte(user+"\x00"+password), []byte(c.User+"\x00"+c.Password)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, req)
	})
}
