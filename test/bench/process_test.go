package bench

import (
	"bufio"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// What is measured runs in processes of its own, so that each pays for itself alone: the Git server, and the bot. They
// are this test binary, told by a variable what to be.
const roleVariable = "RAMPART_BENCH_ROLE"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "server":
		err = serve(os.Args[1])
	case "bot":
		err = (&botProcess{}).serve(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve serves all repositories below a folder over HTTP until it is interrupted.
func serve(dir string) error {
	git, err := exec.LookPath("git")
	if err != nil {
		return err
	}
	server := httptest.NewServer(http.Handler(&cgi.Handler{Path: git, Args: []string{"http-backend"},
		Env: append(gittest.Env(), "GIT_PROJECT_ROOT="+dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=tester")}))
	defer server.Close()
	fmt.Println(server.URL)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	<-stop
	return nil
}

// role starts this binary as something else.
func role(tb testing.TB, name string, args ...string) (stdin io.Writer, stdout *bufio.Reader, stop func()) {
	tb.Helper()
	self, err := os.Executable()
	require.NoError(tb, err)
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+name)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(tb, err)
	out, err := cmd.StdoutPipe()
	require.NoError(tb, err)
	require.NoError(tb, cmd.Start())
	stop = sync.OnceFunc(func() {
		_ = in.Close()
		if name == "server" {
			_ = cmd.Process.Signal(os.Interrupt)
		}
		require.NoError(tb, cmd.Wait())
	})
	tb.Cleanup(stop)
	return in, bufio.NewReaderSize(out, 1<<20), stop
}

// served gives the URL of a repository on a server of its own.
func served(tb testing.TB, r *gittest.Repo) string {
	tb.Helper()
	_, out, _ := role(tb, "server", filepath.Dir(r.Dir))
	url, err := out.ReadString('\n')
	require.NoError(tb, err)
	return url[:len(url)-1] + "/" + filepath.Base(r.Dir)
}

// botClient is a bot in a process of its own.
type botClient struct {
	tb  testing.TB
	in  *json.Encoder
	out *json.Decoder
	// stop lets it end as it ends when it is asked to.
	stop func()
}

// startBot starts a bot that knows what Temporal knows. Its policies are compiled and it has not looked at anything.
func startBot(tb testing.TB, c botConfig) *botClient {
	tb.Helper()
	in, out, stop := role(tb, "bot")
	b := &botClient{tb, json.NewEncoder(in), json.NewDecoder(out), stop}
	b.ask(botRequest{Start: &c})
	return b
}

func (b *botClient) ask(r botRequest) botAnswer {
	b.tb.Helper()
	return b.begin(r)()
}

// begin asks for something, and gives what waits for the answer.
func (b *botClient) begin(r botRequest) func() botAnswer {
	b.tb.Helper()
	require.NoError(b.tb, b.in.Encode(r))
	return func() botAnswer {
		b.tb.Helper()
		var a botAnswer
		require.NoError(b.tb, b.out.Decode(&a))
		require.Empty(b.tb, a.Error)
		require.Empty(b.tb, a.Failures)
		return a
	}
}

// hookSecret proves webhooks, and hookRepository is whose they are.
const hookSecret, hookRepository = "a secret of webhooks", "team/repo"

// deliver sends the webhook of a push of a commit to the main branch as GitHub does.
func deliver(tb testing.TB, url, commit string) {
	tb.Helper()
	body := fmt.Sprintf(`{"ref":"refs/heads/main","after":%q,"repository":{"full_name":%q}}`, commit, hookRepository)
	mac := hmac.New(sha256.New, []byte(hookSecret))
	_, _ = mac.Write([]byte(body))
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(tb, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", "push")
	req.Header.Set("X-GitHub-Delivery", rand.Text())
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	require.NoError(tb, err)
	require.NoError(tb, resp.Body.Close())
	require.Equal(tb, http.StatusAccepted, resp.StatusCode)
}

// cycle is one cycle.
func (b *botClient) cycle() botAnswer { b.tb.Helper(); return b.ask(botRequest{Do: "cycle"}) }

// pause is a time after which versions of before are scaled down.
const pause = 3 * time.Hour

// rest lets time go by after changes, until the versions of before are gone. What is measured next is not what is left
// of the last.
func (b *botClient) rest() {
	b.tb.Helper()
	for range 2 {
		b.quiet()
		b.ask(botRequest{Do: "later"})
	}
	b.quiet()
}

// quiet runs cycles, unmeasured, until nothing is left to do.
func (b *botClient) quiet() {
	b.tb.Helper()
	require.NoError(b.tb, untilQuiet(func() (bool, error) { return len(b.cycle().Commits) == 0, nil }))
}
