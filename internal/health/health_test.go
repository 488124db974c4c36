package health

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func ask(t *testing.T, method, url string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode, strings.TrimSpace(string(body))
}

// A bot is ready once a cycle worked, stays so while others fail, and is not once its repository refuses it.
func TestReadyOnceACycleWorked(t *testing.T) {
	s := &State{}
	beside := Beside{Log: slog.New(slog.DiscardHandler), Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1") })}
	address, stop, err := s.Listen(t.Context(), "127.0.0.1:0", beside)
	require.NoError(t, err)
	url := "http://" + address
	requireHealth := func(ready int, shown string) {
		t.Helper()
		for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": ready} {
			status, body := ask(t, http.MethodGet, url+path)
			require.Equal(t, want, status, path)
			require.Equal(t, shown, body, path)
		}
	}
	requireHealth(503, `{"ready":false}`)
	s.Failed("the repository cannot be read")
	requireHealth(503, `{"ready":false,"problem":"the repository cannot be read"}`)
	s.Succeeded(time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC), "")
	requireHealth(200, `{"ready":true,"lastSuccess":"2026-05-06T07:08:09Z"}`)
	s.Failed("Temporal cannot be read")
	requireHealth(200, `{"ready":true,"lastSuccess":"2026-05-06T07:08:09Z","problem":"Temporal cannot be read"}`)
	s.Refused("the repository refuses the bot")
	requireHealth(503, `{"ready":false,"lastSuccess":"2026-05-06T07:08:09Z","problem":"the repository refuses the bot"}`)

	status, _ := ask(t, http.MethodPost, url+"/readyz")
	require.Equal(t, http.StatusMethodNotAllowed, status)
	status, body := ask(t, http.MethodGet, url+"/metrics")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "up 1", body)
	for method, path := range map[string]string{http.MethodPost: "/metrics", http.MethodGet: "/other"} {
		status, _ = ask(t, method, url+path)
		require.Equal(t, http.StatusNotFound, status, path)
	}
	status, body = ask(t, http.MethodHead, url+"/healthz")
	require.Equal(t, http.StatusOK, status)
	require.Empty(t, body)
	stop()
	_, err = http.Get(url + "/healthz") //nolint:noctx,bodyclose // no server answers
	require.Error(t, err)

	_, _, err = s.Listen(t.Context(), "nowhere", beside)
	require.ErrorContains(t, err, "listen for health checks and metrics")
}
