package metrics_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/metrics"
	"github.com/rampart-gitops/rampart/internal/metrics/metricstest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func client(t *testing.T, c metrics.Config) *metrics.Client {
	t.Helper()
	out, err := metrics.New(c)
	require.NoError(t, err)
	t.Cleanup(out.Close)
	return out
}

// fake is a server that does what a real one does not.
func fake(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

// answer is the body of an answer with one series.
func answer(at time.Time, value string) string {
	return fmt.Sprintf(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[%.3f,%q]}]}}`,
		float64(at.UnixMilli())/1000, value)
}

func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

func TestNotAValue(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"500": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "request 4711 failed", http.StatusInternalServerError)
		}, "Prometheus failed: server error: 500"},
		"503 API":   {status(503, `{"status":"error","errorType":"timeout","error":"query timed out"}`), "it took Prometheus too long: query timed out"},
		"422 API":   {status(422, `{"status":"error","errorType":"execution","error":"many-to-many\nmatching"}`), "Prometheus failed: many-to-many matching"},
		"401":       {status(401, `who?`), "refuses: client error: 401 (look at the address and the credential)"},
		"404":       {status(404, `<html>`), "refuses: client error: 404 (look at the address"},
		"login":     {says("<html>Please log in</html>"), "the answer is text, or not from Prometheus' API at all"},
		"empty":     {says(""), "not from Prometheus' API at all"},
		"cut":       {says(answer(time.Now(), "1")[:60]), "not from Prometheus' API at all"},
		"a word":    {says(answer(time.Now(), "one")), "not from Prometheus' API at all"},
		"null":      {says("null"), "the answer is nothing that is known"},
		"no result": {says(`{"status":"success"}`), "the answer is nothing that is known"},
		"histogram": {says(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[1,{"count":"1","sum":"1","buckets":[]}]}]}}`),
			"the answer is a histogram, expected a number"},
		"warning": {says(strings.Replace(answer(time.Now(), "1"), "{", `{"warnings":["store b is away","a"],`, 1)), "Prometheus warns: a; store b is away"},
		"ahead": {says(answer(time.Now().Add(2*time.Minute), "1")),
			"the server's time is ahead of ours by more than maxAge (1m): look at both clocks"},
		"large":       {says(strings.Repeat("x", 2<<20)), "the answer is larger than 1 MiB"},
		"large error": {status(400, strings.Repeat("x", 2<<20)), "the answer is larger than 1 MiB"},
		"loop": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		},
			"too many redirects: more than 3 from "},
		"hung up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "Prometheus cannot be reached: it hung up before the end"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fake(t, c.handler)
			f := metricstest.Read(t, client(t, metrics.Config{Address: s.URL}), metricstest.Metric("error_rate", "sum(x)", time.Minute), metricstest.Checkout)
			require.Contains(t, f.Error, "query error_rate: ")
			require.Contains(t, f.Error, c.want)
			require.Less(t, len(f.Error), 400)
		})
	}
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

// The time of an answer is the server's, and never later than our own.
func TestTimeOfAnAnswerIsTheServers(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, -time.Second, 30 * time.Second} {
		at := time.Now().Add(skew).Truncate(time.Millisecond)
		s := fake(t, says(answer(at, "1")))
		f := metricstest.Read(t, client(t, metrics.Config{Address: s.URL}), metricstest.Metric("a", "sum(x)", time.Minute), metricstest.Checkout)
		require.Empty(t, f.Error)
		if skew < 0 {
			require.Equal(t, at.UTC(), f.ObservedAt)
		}
		require.False(t, f.ObservedAt.After(time.Now()))
		require.Equal(t, skew > -time.Minute, f.Fresh(time.Now()))
	}
}

// hanging is a server that answers nothing until the test ends, while it hangs.
func hanging(t *testing.T, asked *atomic.Int64, hangs func(*http.Request) bool) *httptest.Server {
	t.Helper()
	end := make(chan struct{})
	s := fake(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if !hangs(r) {
			time.Sleep(10 * time.Millisecond)
			says(answer(time.Now(), "1"))(w, r)
			return
		}
		select {
		case <-end:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(end) }) // before the server is closed
	return s
}

func always(*http.Request) bool { return true }

// many are asks of that many worker deployments, with a query each.
func many(n int) []metrics.Ask {
	asks := make([]metrics.Ask, n)
	for i := range asks {
		asks[i].Metrics = []v1alpha1.Metric{metricstest.Metric("m", fmt.Sprintf("sum(x%d)", i), time.Minute)}
	}
	return asks
}

// A server that hangs costs 200 worker deployments one time-out, then nothing for a while, and one
// time-out again. A few queries at once take one time-out together.
func TestHangingServerCostsOneTimeout(t *testing.T) {
	const timeout = 500 * time.Millisecond
	var asked atomic.Int64
	c := client(t, metrics.Config{Address: hanging(t, &asked, always).URL, Timeout: timeout})
	call := func() (queries int64) {
		before := asked.Load()
		for i, facts := range c.Facts(t.Context(), many(200)) {
			require.Equal(t, map[string]rollout.Fact{"m": {MaxAge: time.Minute, Source: fmt.Sprintf("prometheus: sum(x%d)", i),
				Error: "query m: not asked again: no answer within 500ms"}}, facts, "the words do not tell who was tried")
		}
		return asked.Load() - before
	}
	require.LessOrEqual(t, call(), int64(4))
	require.Zero(t, call())
	time.Sleep(2*timeout + 50*time.Millisecond)
	start := time.Now()
	require.NotZero(t, call())
	require.GreaterOrEqual(t, time.Since(start), timeout)
	require.Zero(t, call(), "the try failed")
}

// A server that was away is asked again, and one answer is enough for all to be asked.
func TestBackAgain(t *testing.T) {
	var asked atomic.Int64
	var well atomic.Bool
	s := hanging(t, &asked, func(*http.Request) bool { return !well.Load() })
	c := client(t, metrics.Config{Address: s.URL, Timeout: 200 * time.Millisecond})
	require.NotEmpty(t, c.Facts(t.Context(), many(1))[0]["m"].Error)
	well.Store(true)
	require.Eventually(t, func() bool {
		for _, f := range c.Facts(t.Context(), many(50)) {
			if f["m"].Error != "" {
				return false
			}
		}
		return true
	}, 10*time.Second, 20*time.Millisecond)
}

// A server that answers slowly has two time-outs for a call. The next call begins with those that had no
// turn, and what has none in it has the value from before, with the time of that.
func TestSlowServerIsAskedInParts(t *testing.T) {
	const timeout = time.Second
	s := fake(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(timeout / 2)
		says(answer(time.Now(), "1"))(w, r)
	})
	c := client(t, metrics.Config{Address: s.URL, Timeout: timeout})
	unknown, calls := 36, 0
	for ; unknown > 0; calls++ {
		require.Less(t, calls, 10, "each call has another part")
		was, start := unknown, time.Now()
		unknown = 0
		for _, f := range c.Facts(t.Context(), many(36)) {
			if f["m"].Error != "" {
				require.Equal(t, "query m: no time was left for it: all queries together may take 2s", f["m"].Error)
				unknown++
			}
		}
		require.Less(t, unknown, was)
		require.Less(t, time.Since(start), 6*timeout)
	}
	require.Greater(t, calls, 1)
	start := time.Now()
	before := 0
	for _, f := range c.Facts(t.Context(), many(36)) {
		require.True(t, f["m"].Fresh(time.Now()))
		if f["m"].ObservedAt.Before(start.Add(-timeout)) {
			before++
		}
	}
	require.Positive(t, before, "a value from before keeps its time")
}

// One query without an answer does not make the server count as away.
func TestOneSlowQuery(t *testing.T) {
	var asked atomic.Int64
	s := hanging(t, &asked, func(r *http.Request) bool { return r.FormValue("query") == "sum(x0)" })
	for i, f := range client(t, metrics.Config{Address: s.URL, Timeout: 2 * time.Second}).Facts(t.Context(), many(40)) {
		want := map[bool]string{true: "query m: no answer within 2s"}[i == 0]
		require.Equal(t, want, f["m"].Error, i)
	}
}

// A call that is cut short says so, and does not make the server count as away.
func TestEndedCycle(t *testing.T) {
	var asked atomic.Int64
	ends := make(chan context.CancelFunc, 1)
	end := func(*http.Request) bool { // the cycle ends when the server is asked
		select {
		case cancel := <-ends:
			cancel()
		default:
		}
		return true
	}
	c := client(t, metrics.Config{Address: hanging(t, &asked, end).URL, Timeout: 10 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	ends <- cancel
	for _, f := range c.Facts(ctx, many(20)) {
		require.Equal(t, "query m: the cycle ended before the answer", f["m"].Error)
	}
	before := asked.Load()
	again, cancel := context.WithCancel(t.Context())
	ends <- cancel
	c.Facts(again, many(1))
	require.Greater(t, asked.Load(), before)
}

// Queries without an answer do not keep those with one from being asked, however many there are.
func TestSomeSilence(t *testing.T) {
	s := fake(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.FormValue("query"), "sum(bad") {
			panic(http.ErrAbortHandler)
		}
		says(answer(time.Now(), "1"))(w, r)
	})
	var ask metrics.Ask
	for i := range 60 {
		name := map[bool]string{true: "bad", false: "good"}[i%6 == 0] + fmt.Sprint(i)
		ask.Metrics = append(ask.Metrics, metricstest.Metric(name, "sum("+name+")", time.Minute))
	}
	for name, f := range client(t, metrics.Config{Address: s.URL}).Facts(t.Context(), []metrics.Ask{ask})[0] {
		if strings.HasPrefix(name, "good") {
			require.Empty(t, f.Error)
		} else {
			require.Equal(t, "query "+name+": Prometheus cannot be reached: it hung up before the end", f.Error)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	f := metricstest.Read(t, client(t, metrics.Config{Address: s.URL}), metricstest.Metric("a", "sum(x)", time.Minute), metricstest.Checkout)
	require.Equal(t, "query a: not asked again: Prometheus cannot be reached: dial: connection refused", f.Error)
	f = metricstest.Read(t, client(t, metrics.Config{Address: "http://prometheus.invalid"}), metricstest.Metric("a", "sum(x)", time.Minute), metricstest.Checkout)
	require.Equal(t, "query a: not asked again: Prometheus cannot be reached: its name is not known to DNS, or DNS cannot be asked", f.Error)
}

// Equal queries are asked once, no more than four at a time, and each metric gets its answer.
func TestOneQuestionOnce(t *testing.T) {
	var mu sync.Mutex
	asked, now, most := map[string]int{}, 0, 0
	met := make(chan struct{}) // the first two of them
	s := fake(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.FormValue("query")+" "+r.FormValue("lookback_delta")]++
		now++
		if now == 2 && most < 2 {
			close(met)
		}
		most = max(most, now)
		mu.Unlock()
		select {
		case <-met:
		case <-r.Context().Done():
		}
		time.Sleep(time.Millisecond) // so that more may meet
		mu.Lock()
		now--
		mu.Unlock()
		_, _ = fmt.Fprint(w, answer(time.Now(), fmt.Sprint(len(r.FormValue("query")))))
	})
	var asks []metrics.Ask
	for i := range 40 {
		v := metricstest.Checkout
		v.BuildID = strings.Repeat("x", 1+i%10)
		asks = append(asks, metrics.Ask{Values: v, Metrics: []v1alpha1.Metric{
			metricstest.Metric("same", "sum(up)", 90*time.Second+time.Millisecond), metricstest.Metric("same_again", "sum(up)", 90*time.Second),
			metricstest.Metric("older", "sum(up)", time.Hour), metricstest.Metric("own", `sum(x{b="{{ .BuildID }}"})`, time.Minute)}})
	}
	facts := client(t, metrics.Config{Address: s.URL}).Facts(t.Context(), asks)
	want := map[string]int{"sum(up) 1m30s": 1, "sum(up) 5m0s": 1}
	for i, f := range facts {
		require.Len(t, f, 4)
		query := `sum(x{b="` + asks[i].Values.BuildID + `"})`
		want[query+" 1m0s"] = 1
		require.JSONEq(t, "7", string(f["same"].Value))
		require.JSONEq(t, fmt.Sprint(len(query)), string(f["own"].Value))
		require.Equal(t, "prometheus: "+query, f["own"].Source)
		require.Equal(t, time.Hour, f["older"].MaxAge)
	}
	require.Equal(t, want, asked)
	require.LessOrEqual(t, most, 4)
	require.Greater(t, most, 1)
	require.Empty(t, client(t, metrics.Config{Address: s.URL}).Facts(t.Context(), nil))
}

// tokenFile is a file with a token.
func tokenFile(t *testing.T, token string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(token), 0o600))
	return file
}

// Over TLS, to the configured server alone, as it is in its file now.
func TestCredentialGoesToTheServerAlone(t *testing.T) {
	server := fake(t, says(answer(time.Now(), "1")))
	target, err := url.Parse(server.URL)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	token := "first"
	s := httptest.NewTLSServer(http.StripPrefix("/prefix", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	})))
	t.Cleanup(s.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	file := tokenFile(t, "first\n")
	m := metricstest.Metric("a", "vector(1)", time.Minute)

	c := client(t, metrics.Config{Address: s.URL + "/prefix/", BearerTokenFile: file, CAFile: ca})
	require.Empty(t, metricstest.Read(t, c, m, metricstest.Checkout).Error)
	token = "second"
	require.Contains(t, metricstest.Read(t, c, m, metricstest.Checkout).Error, "client error: 401")
	require.NoError(t, os.WriteFile(file, []byte("second"), 0o600))
	require.Empty(t, metricstest.Read(t, c, m, metricstest.Checkout).Error, "a rotated token is read anew")
	require.NoError(t, os.Remove(file))
	require.Contains(t, metricstest.Read(t, c, m, metricstest.Checkout).Error, "query a: the file of --prometheus-token-file cannot be read: no such file or directory")

	require.Contains(t, metricstest.Read(t, client(t, metrics.Config{Address: s.URL + "/prefix"}), m, metricstest.Checkout).Error,
		"its certificate is signed by an unknown authority")
	require.Contains(t, metricstest.Read(t, client(t, metrics.Config{Address: strings.Replace(s.URL, "127.0.0.1", "localhost", 1), CAFile: ca}), m, metricstest.Checkout).Error,
		"its certificate is for another name")
	require.Contains(t, metricstest.Read(t, client(t, metrics.Config{Address: strings.Replace(server.URL, "http:", "https:", 1)}), m, metricstest.Checkout).Error,
		"it does not speak TLS")
}

// Within the server they are followed, and to another one neither query nor credential goes.
func TestRedirectsToOthersAreRefused(t *testing.T) {
	var elsewhere []rollout.Fact
	var reached atomic.Int64
	other := fake(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	for _, code := range []int{301, 302, 307, 308} {
		s := fake(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL+r.URL.Path, code) })
		c := client(t, metrics.Config{Address: s.URL, BearerTokenFile: tokenFile(t, "secret")})
		elsewhere = append(elsewhere, metricstest.Read(t, c, metricstest.Metric("a", "sum(x)", time.Minute), metricstest.Checkout))
	}
	for _, f := range elsewhere {
		require.Equal(t, "query a: Prometheus redirects to "+other.URL+", where no query is sent: configure the address that answers", f.Error)
	}
	require.Zero(t, reached.Load())

	s := fake(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/new") {
			http.Redirect(w, r, "/new"+r.URL.Path, http.StatusPermanentRedirect)
			return
		}
		require.Equal(t, "Bearer secret", r.Header.Get("Authorization"))
		require.Equal(t, "sum(x)", r.FormValue("query"))
		says(answer(time.Now(), "1"))(w, r)
	})
	c := client(t, metrics.Config{Address: s.URL, BearerTokenFile: tokenFile(t, "secret")})
	require.Empty(t, metricstest.Read(t, c, metricstest.Metric("a", "sum(x)", time.Minute), metricstest.Checkout).Error)
}

func TestConfigRefused(t *testing.T) {
	token, nothing := tokenFile(t, "t"), tokenFile(t, " \n")
	for want, c := range map[string]metrics.Config{
		"is not an http or https URL":      {Address: "prometheus:9090"},
		" is not an http or https":         {},
		"ftp://a is not an http":           {Address: "ftp://a"},
		"http:///x is not an http":         {Address: "http:///x"},
		"it is not a URL":                  {Address: "http://a:secret@b:c"},
		"http://a:xxxxx@b holds a user":    {Address: "http://a:secret@b"},
		"has a query or a fragment":        {Address: "http://a?b=c"},
		"over which anybody on the way":    {Address: "http://prometheus.example.com", BearerTokenFile: token},
		"http://10.0.0.1 is plain HTTP":    {Address: "http://10.0.0.1", BearerTokenFile: token},
		"certificates are given for it":    {Address: "http://a", CAFile: token},
		"holds no certificate in PEM":      {Address: "https://a", CAFile: token},
		"certificates for Prometheus: ope": {Address: "https://a", CAFile: token + "x"},
		"credential for Prometheus: open":  {Address: "https://a", BearerTokenFile: token + "x"},
		"does not hold one token":          {Address: "https://a", BearerTokenFile: nothing},
		"timeout -1s of Prometheus":        {Address: "https://a", Timeout: -time.Second},
	} {
		_, err := metrics.New(c)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret")
	}
	for _, address := range []string{"http://localhost:9090", "http://127.0.0.1:9090/x", "http://[::1]", "https://prometheus.example.com"} {
		_, err := metrics.New(metrics.Config{Address: address, BearerTokenFile: token})
		require.NoError(t, err, address)
	}
}
