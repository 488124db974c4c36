package forgetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Reply is an answer. A Body is given as JSON, with what its contract requires and was left out.
type Reply struct {
	Status int
	Body   any
	Header http.Header
}

// Call is a request to an operation.
type Call struct {
	*State
	By      *User
	Request *http.Request
	Server  *Server
	sent    []byte
}

// Param is a part of the path.
func (c *Call) Param(name string) string { return c.Request.PathValue(name) }

// Number is a part of the path that is one.
func (c *Call) Number(name string) int {
	n, err := strconv.Atoi(c.Param(name))
	if err != nil {
		return 0
	}
	return n
}

// Query is a parameter.
func (c *Call) Query(name string) string { return c.Request.URL.Query().Get(name) }

// Decode reads what was sent. A body that is not JSON is read as empty: the contract says that it is wrong, too.
func (c *Call) Decode(into any) {
	if err := json.Unmarshal(c.sent, into); err != nil && len(c.sent) > 0 {
		c.Server.wrong(c.Request, []string{err.Error()})
	}
}

// Page is a part of a list, and the headers that lead to the next one.
func Page[T any](c *Call, all []T) ([]T, http.Header) {
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(c.Query(name)); err == nil && n > 0 {
			return n
		}
		return otherwise
	}
	page, per := number("page", 1), min(number("per_page", 30), c.rules.MaxPage)
	from := min((page-1)*per, len(all))
	to := min(from+per, len(all))
	header := http.Header{}
	if to < len(all) {
		next := *c.Request.URL
		query := next.Query()
		query.Set("page", strconv.Itoa(page+1))
		next.RawQuery = query.Encode()
		header.Set("Link", fmt.Sprintf("<%s%s>; rel=\"next\"", c.Server.URL, next.RequestURI()))
		header.Set("X-Next-Page", strconv.Itoa(page+1))
	}
	return all[from:to], header
}

// Operation answers a request.
type Operation func(*Call) Reply

// Config is what a server is made of.
type Config struct {
	Contract *Contract
	Prefix   string // of the paths in the contract: "/api/v3"
	// Operations by method and path: "GET /repos/{owner}/{repo}".
	Operations map[string]Operation
	// Plain are those that have a contract of their own; they get no prefix.
	Plain map[string]Operation
	// Around is done before all of it; may be nil.
	Around func(http.Handler) http.Handler
	// Refuse is an answer that says no.
	Refuse func(status int, why string) Reply
}

// Server is a forge in a test.
type Server struct {
	URL string
	// Report gets each problem against the contract; the test fails of it unless this is set to something else.
	Report func(problem string)
	// Before, if set, may answer a request instead. It gives false if it did not.
	Before func(http.ResponseWriter, *http.Request) bool
	// Mangle, if set, changes a reply before it is looked at.
	Mangle func(operation string, body any) any

	world  *World
	config Config
	mu     sync.Mutex
	asked  int
}

// Serve serves a world until the test ends.
func Serve(tb testing.TB, w *World, config Config) *Server {
	tb.Helper()
	s := &Server{world: w, config: config, Report: func(problem string) { tb.Error(problem) }}
	mux := http.NewServeMux()
	for pattern, operation := range config.Operations {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+config.Prefix+path, s.handle(path, operation))
	}
	for pattern, operation := range config.Plain {
		mux.HandleFunc(pattern, s.handle("", operation))
	}
	mux.HandleFunc("/", func(rw http.ResponseWriter, r *http.Request) {
		s.wrong(r, []string{"nothing is documented at this address"})
		rw.WriteHeader(http.StatusNotImplemented)
	})
	var all http.Handler = mux
	if config.Around != nil {
		all = config.Around(mux)
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked++
		before := s.Before
		s.mu.Unlock()
		if before == nil || !before(rw, r) {
			all.ServeHTTP(rw, r)
		}
	}))
	tb.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Asked is how many requests there were.
func (s *Server) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// SetBefore sets Before, while requests may come.
func (s *Server) SetBefore(before func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Before = before
}

func (s *Server) wrong(r *http.Request, problems []string) {
	for _, problem := range problems {
		s.Report(r.Method + " " + r.URL.Path + ": " + problem)
	}
}

// handle answers a request to a path of the contract, or to one that looks after itself.
func (s *Server) handle(path string, operation Operation) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			s.wrong(r, []string{err.Error()})
		}
		var reply Reply
		s.world.Do(func(state *State) {
			token, known := state.Token(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
			c := &Call{State: state, By: token.User, Request: r, Server: s, sent: sent}
			switch refuse := s.config.Refuse; {
			case !known:
				reply = refuse(http.StatusUnauthorized, "Bad credentials")
			case path != "" && token.Read && r.Method != http.MethodGet:
				reply = refuse(http.StatusForbidden, "Resource not accessible by personal access token")
			default:
				reply = operation(c)
			}
		})
		text := s.text(r, path, reply)
		if path != "" {
			s.wrong(r, s.config.Contract.check(exchange{
				path: path, params: params(r, path), request: r, sent: sent, status: reply.Status, reply: text,
			}))
		}
		maps.Copy(rw.Header(), reply.Header)
		rw.Header().Set("Content-Type", "application/json; charset=utf-8")
		rw.WriteHeader(reply.Status)
		_, _ = rw.Write(text) // who hung up does not want it
	}
}

// text is the body of a reply, with all that is required of it.
func (s *Server) text(r *http.Request, path string, reply Reply) []byte {
	if reply.Body == nil {
		return nil
	}
	plain, err := json.Marshal(reply.Body)
	if err != nil {
		s.wrong(r, []string{err.Error()})
		return nil
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(plain))
	if err := decoder.Decode(&value); err != nil {
		s.wrong(r, []string{err.Error()})
	}
	if _, operation := s.config.Contract.operation(r.Method, path); operation != nil {
		if schema, _ := s.config.Contract.reply(operation, reply.Status); schema != nil {
			value = fill(chosen(schema), value)
		}
	}
	if s.Mangle != nil {
		value = s.Mangle(r.Method+" "+path, value)
	}
	full, err := json.Marshal(value)
	if err != nil {
		s.wrong(r, []string{err.Error()})
	}
	return full
}

func params(r *http.Request, path string) map[string]string {
	all := map[string]string{}
	for segment := range strings.SplitSeq(path, "/") {
		if name, is := strings.CutPrefix(segment, "{"); is {
			name = strings.TrimSuffix(name, "}")
			all[name] = url.PathEscape(r.PathValue(name))
		}
	}
	return all
}

// Newest gives pull requests as lists do: those that are asked for, by a time, the newest first.
func Newest(pulls []*Pull, want func(*Pull) bool, before func(a, b *Pull) int) []*Pull {
	var all []*Pull
	for _, p := range pulls {
		if want(p) {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b *Pull) int { return before(b, a) })
	return all
}
