package bundle

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// A bundle is downloaded once, and asked for again with its ETag.
func TestConditionalGet(t *testing.T) {
	s := newServer(t)
	s.has(good(t, "r1"), `"one"`)
	b := newBench(t, s, nil)
	first := b.refresh()
	require.Empty(t, holds(first))
	want := rollout.Fact{Value: []byte(`"r1"`), ObservedAt: b.clock, MaxAge: DefaultMaxAge, Source: "policy bundle " + s.URL + "/org.tar.gz"}
	require.Equal(t, map[string]rollout.Fact{"bundle.org": want}, first.Facts)

	b.clock = b.clock.Add(time.Minute)
	second := b.refresh()
	require.Equal(t, first.Key, second.Key)
	require.Equal(t, b.clock, second.Facts["bundle.org"].ObservedAt, "304 confirms it")
	require.Equal(t, []string{"", `"one"`}, []string{s.asked[0].Header.Get("If-None-Match"), s.asked[1].Header.Get("If-None-Match")})

	s.has(good(t, "r2"), `"two"`)
	third := b.refresh()
	require.Equal(t, `"r2"`, revision(third))
	require.NotEqual(t, first.Key, third.Key)
	require.Equal(t, rule("r2"), third.Layers[0].Modules[0].Source)
}

// What goes wrong after a good bundle takes nothing away: it is said, and the bundle's age goes on from when it was
// confirmed.
func TestTheLastGoodOneStays(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(good(t, "stolen")) }))
	t.Cleanup(other.Close)
	serve := func(archive []byte) func(*server) { return func(s *server) { s.has(archive, `"bad"`) } }
	redirect := func(to string) func(*server) {
		return func(s *server) {
			s.does(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
		}
	}
	key := rsaSigner(t)
	signed := func(m made) []byte {
		m.by, m.modules = &key, map[string]string{"/org.rego": rule("x")}
		return m.archive(t)
	}
	stranger := curveSigner(t)
	for name, c := range map[string]struct {
		then func(*server)
		want string
	}{
		"500":                {func(s *server) { s.says(500) }, "the server answers HTTP 500 Internal Server Error"},
		"401":                {func(s *server) { s.says(401) }, "HTTP 401 Unauthorized (look at the token)"},
		"gone":               {func(s *server) { s.says(404) }, "HTTP 404 Not Found (look at the URL)"},
		"204":                {func(s *server) { s.says(204) }, "HTTP 204"},
		"away":               {func(s *server) { s.Close() }, "its server cannot be reached: dial: connection refused"},
		"another host":       {redirect(other.URL + "/org.tar.gz"), "it redirects to " + other.URL + ", which is not followed"},
		"round and round":    {redirect("/org.tar.gz"), "too many redirects: more than 3 from "},
		"a page":             {serve([]byte("<html>sign in</html>")), "is refused: it is not a gzipped tar"},
		"broken Rego":        {serve(made{by: &key, modules: map[string]string{"/x.rego": "package acme\n\nx := \n"}}.archive(t)), "rego_parse_error"},
		"does not compile":   {serve(made{by: &key, modules: map[string]string{"/x.rego": "package acme\n\nx := y\n"}}.archive(t)), "bundle:org/x.rego:3: var y is unsafe"},
		"unsigned":           {serve(good(t, "r2")), "missing .signatures.json"},
		"signed by a strang": {serve(made{by: &stranger, modules: map[string]string{"/x.rego": rule("x")}}.archive(t)), "failed to verify"},
		"truncated": {func(s *server) {
			s.does(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "1000")
				_, _ = w.Write([]byte("\x1f\x8b"))
			})
		}, "hung up before the end"},
		"hung up": {func(s *server) {
			s.does(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		}, "hung up before the end"},
		"too large": {func(s *server) {
			s.does(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, MaxDownload+1)) })
		}, "it is larger than 8 MiB"},
		"slow": {func(s *server) {
			s.does(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusOK)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			})
		}, "no whole answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.has(signed(made{}), `"one"`)
			b := newBench(t, s, func(c *Config) {
				c.Signatures, c.Keys = Signed, []Key{key.key(t, "")}
			})
			was := b.refresh()
			require.Empty(t, holds(was))
			if name == "slow" {
				b.config.Timeout = time.Second
				b.start()
			}
			c.then(s)
			b.clock = b.clock.Add(time.Hour)
			now := b.refresh()
			require.Equal(t, was, now)
			require.Contains(t, b.log.String(), "policy bundle not updated")
			require.Contains(t, b.log.String(), c.want)
			b.refresh()
			require.Equal(t, 1, strings.Count(b.log.String(), "policy bundle not updated"), "said once: %s", b.log)

			b.clock = b.clock.Add(DefaultMaxAge)
			old := b.store.Floor()
			require.Equal(t, was.Key, old.Key, "the policies stay, however old they are")
			require.False(t, old.Facts["bundle.org"].Fresh(b.clock))
			require.Contains(t, old.Facts["bundle.org"].Error, c.want)
			require.Equal(t, was.Facts["bundle.org"].Value, old.Facts["bundle.org"].Value, "what is in force is told")

			b.start()
			require.Equal(t, was.Key, b.store.Floor().Key, "a restart has it from the cache")
			require.Equal(t, old.Facts["bundle.org"].ObservedAt, b.store.Floor().Facts["bundle.org"].ObservedAt)
		})
	}
}

// A new bundle that is fine by itself, and breaks the bot's other policies, does not come into force.
func TestABundleThatBreaksOthers(t *testing.T) {
	s := newServer(t)
	s.has(good(t, "r1"), `"one"`)
	dir := folder(t, map[string]string{"help.rego": "package acme.help\n\nlimit := 1\n\nown(x) := x\n"})
	b := newBench(t, s, func(c *Config) { c.Dirs = []string{dir} })
	was := b.refresh()
	require.Empty(t, holds(was))
	require.Equal(t, []string{"bundle:org", dir}, []string{was.Layers[0].Name, was.Layers[1].Name})
	s.has(made{modules: map[string]string{"/x.rego": "package acme.help\n\nown(x, y) := x + y\n"}}.archive(t), `"two"`)
	require.Equal(t, was.Key, b.refresh().Key)
	require.Contains(t, b.log.String(), "beside the bot's other policies: ")
	s.has(good(t, "r3"), `"three"`)
	require.Equal(t, `"r3"`, revision(b.refresh()))
}

// Without any bundle every raise waits, and it is said why; when it comes, they go on.
func TestNeverHad(t *testing.T) {
	s := newServer(t)
	s.says(503)
	b := newBench(t, s, nil)
	require.Equal(t, []parse.Problem{{Path: "bundle:org", Message: "there is no policy bundle org, so every raise waits: it was not downloaded yet"}},
		holds(b.store.Floor()))
	f := b.refresh()
	why := "there is no policy bundle org, so every raise waits: " + s.URL + "/org.tar.gz: the server answers HTTP 503 Service Unavailable"
	require.Equal(t, []parse.Problem{{Path: "bundle:org", Message: why}}, holds(f))
	require.Equal(t, why, f.Facts["bundle.org"].Error)
	require.Equal(t, []string{"org"}, b.store.Missing())
	s.has(good(t, "r1"), "")
	f = b.refresh()
	require.Empty(t, holds(f))
	require.Empty(t, b.store.Missing())
	require.NotEqual(t, policy.Compile(policy.Config{Floor: f.Layers}).Digest(), policy.Compile(policy.Config{}).Digest())
}

// What is in the cache is verified again, and one that is damaged is as if there were none.
func TestCacheIsVerifiedAgain(t *testing.T) {
	key, stranger := rsaSigner(t), rsaSigner(t)
	archive := made{by: &key, modules: map[string]string{"/org.rego": rule("no")}}.archive(t)
	one := func(t *testing.T, b *bench) string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(b.config.CacheDir, "bundles", "*"))
		require.NoError(t, err)
		require.Len(t, files, 1)
		return files[0]
	}
	rewrite := func(change func([]byte) []byte) func(*testing.T, *bench) {
		return func(t *testing.T, b *bench) {
			text, err := os.ReadFile(one(t, b))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(one(t, b), change(text), 0o600))
		}
	}
	for name, c := range map[string]struct {
		change func(*testing.T, *bench)
		// want is what the log says; "" if the cache is used.
		want string
	}{
		"as it was": {func(*testing.T, *bench) {}, ""},
		"another key": {func(t *testing.T, b *bench) { b.config.Keys = []Key{stranger.key(t, "")} },
			"failed to verify JWT signature"},
		"one bit": {rewrite(func(x []byte) []byte { x[len(x)-9] ^= 1; return x }), "its content is not what was written"},
		"cut off": {rewrite(func(x []byte) []byte { return x[:len(x)/2] }), "its content is not what was written"},
		"empty":   {rewrite(func([]byte) []byte { return nil }), "it is damaged"},
		"another": {func(t *testing.T, b *bench) {
			file := newCacheFile(b.config.CacheDir, b.config.Bundles[0])
			require.NoError(t, file.write(cached{archive: good(t, "unsigned"), confirmed: b.clock}))
		}, "missing .signatures.json"},
		"another URL": {func(t *testing.T, b *bench) {
			was := one(t, b)
			b.config.Bundles[0].URL += "?x"
			require.NoError(t, os.Rename(was, newCacheFile(b.config.CacheDir, b.config.Bundles[0]).path))
		}, "it is of another URL"},
		"another format": {rewrite(func(x []byte) []byte { return []byte(strings.Replace(string(x), `"format":1`, `"format":2`, 1)) }),
			"it has format 2: expected 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.has(archive, `"one"`)
			b := newBench(t, s, func(c *Config) { c.Signatures, c.Keys = Signed, []Key{key.key(t, "")} })
			was := b.refresh()
			require.Empty(t, holds(was))
			b.log.Reset()
			c.change(t, b)
			s.says(503)
			b.start()
			if c.want == "" {
				require.Equal(t, was, b.store.Floor())
				s.has(archive, `"one"`)
				b.refresh()
				require.Equal(t, `"one"`, s.asked[len(s.asked)-1].Header.Get("If-None-Match"))
				require.NotContains(t, b.log.String(), "WARN")
				return
			}
			require.Contains(t, b.log.String(), "the cached policy bundle is ignored")
			require.Contains(t, b.log.String(), c.want)
			require.Len(t, holds(b.refresh()), 1)
		})
	}
}

// A cache whose time lies ahead proves no age.
func TestCacheOfTheFuture(t *testing.T) {
	s := newServer(t)
	s.has(good(t, "r1"), `"one"`)
	b := newBench(t, s, nil)
	was := b.refresh()
	b.clock = b.clock.Add(-time.Hour)
	b.start()
	require.Equal(t, was.Key, b.store.Floor().Key)
	require.False(t, b.store.Floor().Facts["bundle.org"].Fresh(b.clock))
	require.True(t, b.refresh().Facts["bundle.org"].Fresh(b.clock))
}

// Where the cache cannot be written, the bundle is in force all the same.
func TestNoCache(t *testing.T) {
	s := newServer(t)
	s.has(good(t, "r1"), "")
	b := newBench(t, s, func(c *Config) {
		c.CacheDir = filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(c.CacheDir, nil, 0o600))
	})
	require.Empty(t, holds(b.refresh()))
	b.refresh()
	require.Equal(t, 1, strings.Count(b.log.String(), "not kept for the next start"))
}

// The token goes to the bundle's server alone, is read each time, and is in no message.
func TestTokenGoesToTheServerAlone(t *testing.T) {
	s := newServer(t)
	token, problem := "s3cret", error(nil)
	b := newBench(t, s, func(c *Config) {
		c.Bundles[0].Token = func(context.Context) (string, error) { return token, problem }
		c.Bundles[0].URL += "?signature=s3cret"
	})
	s.does(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/org.tar.gz" {
			http.Redirect(w, r, "/real.tar.gz", http.StatusFound)
			return
		}
		_, _ = w.Write(good(t, r.Header.Get("Authorization")))
	})
	require.Equal(t, `"Bearer s3cret"`, revision(b.refresh()))
	token = "renewed"
	require.Equal(t, `"Bearer renewed"`, revision(b.refresh()))
	b.log.Reset()
	problem = errors.New("no such file")
	b.refresh()
	require.Contains(t, b.log.String(), "the token for it: no such file")
	problem, token = nil, "two words"
	b.refresh()
	require.Contains(t, b.log.String(), "it is empty, or not one word")
	s.says(500)
	token = "s3cret"
	b.refresh()
	require.NotContains(t, b.log.String(), "s3cret")
	require.NotContains(t, b.log.String(), "two words")
}

// Another host gets no request at all, whatever the server says.
func TestNothingGoesToAnotherHost(t *testing.T) {
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(other.Close)
	s := newServer(t)
	for _, to := range []string{other.URL, strings.Replace(other.URL, "127.0.0.1", "localhost", 1), "http://" + s.Listener.Addr().String(), "file:///etc/passwd"} {
		s.does(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusTemporaryRedirect) })
		b := newBench(t, s, func(c *Config) {
			c.Bundles[0].Token = func(context.Context) (string, error) { return "s3cret", nil }
		})
		require.Len(t, holds(b.refresh()), 1, to)
	}
	require.Zero(t, asked.Load())
}

// The certificate is checked.
func TestUnknownAuthority(t *testing.T) {
	s := newServer(t)
	s.has(good(t, "r1"), "")
	b := newBench(t, s, func(c *Config) { c.CAFile = "" })
	require.Contains(t, b.refresh().Facts["bundle.org"].Error, "certificate is signed by an unknown authority")
}

// Poll asks at once, and again; Floor never waits for it.
func TestPollAsksAtOnceAndAgain(t *testing.T) {
	s := newServer(t)
	arrived, answer := make(chan struct{}), make(chan struct{})
	s.does(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		_, _ = w.Write(good(t, "r1"))
	})
	b := newBench(t, s, func(c *Config) { c.Interval = time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	var polling sync.WaitGroup
	polling.Go(func() { b.store.Poll(ctx) })
	<-arrived
	require.Len(t, holds(b.store.Floor()), 1, "while the server makes up its mind")
	answer <- struct{}{}
	<-arrived
	require.Empty(t, holds(b.store.Floor()))
	cancel()
	answer <- struct{}{}
	polling.Wait()
}

func TestConfigurationsAreChecked(t *testing.T) {
	key := rsaSigner(t).key(t, "")
	token := func(context.Context) (string, error) { return "x", nil }
	one := func(url string) []Bundle { return []Bundle{{Name: "org", URL: url}} }
	const far = "http://example.com/b.tar.gz"
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"not said":         {Config{Bundles: one("https://example.com/b")}, "say whether policy bundles have to be signed"},
		"no key":           {Config{Bundles: one("https://example.com/b"), Signatures: Signed}, "no key to verify them with"},
		"both":             {Config{Bundles: one("https://example.com/b"), Signatures: Unsigned, Keys: []Key{key}}, "only one of both"},
		"plain":            {Config{Bundles: one(far), Signatures: Signed, Keys: []Key{key}}, "is plain HTTP"},
		"plain, unsigned":  {Config{Bundles: one(far), Signatures: Unsigned, PlainHTTP: AnyHost}, "need not be signed"},
		"plain, token":     {Config{Bundles: []Bundle{{Name: "org", URL: far, Token: token}}, Signatures: Signed, Keys: []Key{key}, PlainHTTP: AnyHost}, "read the token"},
		"user":             {Config{Bundles: one("https://u:s3cret@example.com/b"), Signatures: Unsigned}, "https://example.com/b holds a user"},
		"no URL":           {Config{Bundles: one("https://exa mple.com/s3cret"), Signatures: Unsigned}, "read the URL: expected http or https"},
		"file":             {Config{Bundles: one("file:///b.tar.gz"), Signatures: Unsigned}, "read the URL: expected http or https"},
		"name":             {Config{Bundles: []Bundle{{Name: "../x", URL: "https://example.com/b"}}, Signatures: Unsigned}, `policy bundle "../x": a name has lower-case letters`},
		"twice":            {Config{Bundles: append(one("https://a.example.com"), one("https://b.example.com")...), Signatures: Unsigned}, `"org" is given twice`},
		"negative":         {Config{Interval: -1}, "interval of policy bundles is negative"},
		"no authorities":   {Config{CAFile: "none.pem"}, "authorities for policy bundles: open none.pem"},
		"no PEM":           {Config{CAFile: "store_test.go"}, "store_test.go holds no certificate in PEM"},
		"no such folder":   {Config{Dirs: []string{"none"}}, "read policies: open none"},
		"two without name": {Config{Bundles: one("https://example.com/b"), Signatures: Signed, Keys: []Key{key, key}}, "each needs an ID"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(c.config)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "s3cret")
		})
	}
	for _, url := range []string{"http://127.0.0.1:1/b", "http://localhost/b", "http://[::1]/b", "https://example.com/b?x=y"} {
		_, err := Open(Config{Bundles: one(url), Signatures: Unsigned})
		require.NoError(t, err, url)
	}
	_, err := Open(Config{Bundles: one(far), Signatures: Signed, Keys: []Key{key}, PlainHTTP: AnyHost})
	require.NoError(t, err)
}
