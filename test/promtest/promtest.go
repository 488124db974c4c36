// Package promtest runs a real Prometheus for tests: on loopback, with its own folder, scraping one target. It ends
// with the test.
package promtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rampart-gitops/rampart/internal/logtest"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// patience is how long a test waits for what should take moments.
const patience = 60 * time.Second

// Server is a running Prometheus.
type Server struct {
	// URL without a slash at its end.
	URL string

	exposed atomic.Pointer[string]
}

// Start runs a Prometheus until the test ends, and gives it when it answers. Its target shows what Expose says. Where
// there is none: testneed.Missing.
func Start(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{}
	s.Expose("")
	target := httptest.NewServer(http.HandlerFunc(s.scraped))
	tb.Cleanup(target.Close)
	s.start(tb, target.Listener.Addr().String())
	return s
}

// StartOn runs a Prometheus, as Start does, that scrapes /metrics of an address.
func StartOn(tb testing.TB, address string) *Server {
	tb.Helper()
	s := &Server{}
	s.start(tb, address)
	return s
}

// StartOnListed runs a Prometheus, as Start does, that scrapes the targets which a URL lists, in the format of
// Prometheus' HTTP service discovery.
func StartOnListed(tb testing.TB, url string) *Server {
	tb.Helper()
	s := &Server{}
	s.configure(tb, fmt.Sprintf("http_sd_configs: [{url: %q, refresh_interval: 1s}]", url))
	return s
}

func (s *Server) start(tb testing.TB, target string) {
	tb.Helper()
	s.configure(tb, fmt.Sprintf("static_configs: [{targets: [%q]}]", target))
}

// configure starts a server that finds what it scrapes by this part of its configuration.
func (s *Server) configure(tb testing.TB, targets string) {
	tb.Helper()
	binary := find(tb)
	dir := tb.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s}\n"+
		"scrape_configs: [{job_name: test, %s}]\n", targets)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	// Somebody else may take the port between finding it and listening on it.
	var err error
	for i := range 5 {
		if err = s.run(tb, binary, config, filepath.Join(dir, fmt.Sprint("data", i))); err == nil {
			return
		}
	}
	tb.Fatal(err)
}

func find(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		testneed.Missing(tb,
			"prometheus is needed and not installed (Debian: apt-get install --no-install-recommends prometheus)")
	}
	return path
}

// run starts the server once, and waits until it is ready.
func (s *Server) run(tb testing.TB, binary, config, data string) error {
	tb.Helper()
	port, err := testneed.FreePort()
	if err != nil {
		return err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	var log logtest.Buffer
	cmd := exec.Command(binary, "--config.file="+config, "--storage.tsdb.path="+data, "--web.listen-address="+address,
		"--log.level=warn")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // killed, or its log says why
		close(ended)
	}()
	stop := func() {
		_ = cmd.Process.Kill()
		<-ended
	}
	s.URL = "http://" + address
	if err := s.ready(ended); err != nil {
		stop()
		return fmt.Errorf("start prometheus: %w\n%s", err, log.String())
	}
	tb.Cleanup(stop)
	return nil
}

func (s *Server) ready(ended <-chan struct{}) error {
	return poll(func() error {
		select {
		case <-ended:
			return permanent{errors.New("it ended")}
		default:
		}
		_, err := get(s.URL + "/-/ready")
		return err
	})
}

// Expose sets what the target shows at the next scrape, in the text format of Prometheus. A sample may have a time of
// its own.
func (s *Server) Expose(text string) { s.exposed.Store(&text) }

func (s *Server) scraped(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = io.WriteString(w, *s.exposed.Load())
}

// Await waits until a query has a series. The first scrape is some five seconds after the start.
func (s *Server) Await(tb testing.TB, query string) {
	tb.Helper()
	if err := poll(func() error {
		body, err := get(s.URL + "/api/v1/query?" + url.Values{"query": {query}}.Encode())
		if err != nil {
			return err
		}
		var answer struct {
			Data struct {
				Result []json.RawMessage `json:"result"`
			} `json:"data"`
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			return err
		}
		if len(answer.Data.Result) == 0 {
			return errors.New("no series")
		}
		return nil
	}); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
}

// permanent is an error that waiting does not mend.
type permanent struct{ error }

func poll(try func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := try()
		var p permanent
		if err == nil || errors.As(err, &p) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func get(address string) ([]byte, error) {
	resp, err := http.Get(address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", resp.Status, body)
	}
	return body, err
}
