package auditlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/mask"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
)

var noon = time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)

func masker(t require.TestingT, pointers ...string) *mask.Masker {
	m, err := mask.New(pointers...)
	require.NoError(t, err)
	return m
}

// planted is an input with a text in one place; the place is a JSON document with SECRET in it.
func planted(place string) string {
	return `{"now":"2026-03-03T12:00:00Z","deployment":{"namespace":"payments","name":"checkout"` + place + `},"actions":[]}`
}

func spec(s string) string { return `,"spec":{"template":{"spec":{` + s + `}}}` }

// places where a secret is masked without being asked.
func places() []string {
	return []string{
		spec(`"containers":[{"env":[{"name":"REGION","value":"SECRET"}]}]`),
		spec(`"initContainers":[{"name":"a"},{"env":[{"name":"A"},{"name":"REGION","value":"SECRET"}]}]`),
		spec(`"ephemeralContainers":[{"env":[{"name":"X","value":"SECRET"}]}]`),
		spec(`"containers":[{"args":["--token=SECRET"]}]`),
		spec(`"containers":[{"args":["--token=a&SECRET;b"]}]`),
		spec(`"containers":[{"args":["--api-key","SECRET"]}]`),
		spec(`"containers":[{"args":["-Ddb.password=SECRET","x"]}]`),
		spec(`"containers":[{"command":["sh","-c","export TOKEN=SECRET && run"]}]`),
		spec(`"containers":[{"command":["sh","-c","run --secret SECRET --fast"]}]`),
		spec(`"containers":[{"command":["curl","-H","Authorization: Bearer SECRET"]}]`),
		spec(`"containers":[{"args":["postgres://app:SECRET@db/app"]}]`),
		spec(`"containers":[{"args":["https://SECRET@example.com/app.git"]}]`),
		`,"metadata":{"annotations":{"example.com/api-key":"SECRET"}}`,
		`,"metadata":{"annotations":{"example.com/store":"redis://x:SECRET@cache:6379"}}`,
		`,"metadata":{"labels":{"Password":"SECRET"}}`,
		`,"spec":{"template":{"metadata":{"annotations":{"vault_token":"SECRET"}}}}`,
		spec(`"containers":[{"livenessProbe":{"httpGet":{"httpHeaders":[{"name":"Authorization","value":"Bearer SECRET"}]}}}]`),
		spec(`"containers":[{"readinessProbe":{"httpGet":{"httpHeaders":[{"name":"X-Auth","value":"SECRET"}]}}}]`),
		spec(`"containers":[{"lifecycle":{"preStop":{"httpGet":{"httpHeaders":[{"value":"SECRET","name":"Cookie"}]}}}}]`),
		spec(`"custom":[{"name":"db-password","value":"SECRET"}]`),
		spec(`"custom":[{"dbPassword":"SECRET"},{"deep":{"apiKey":"a"}}]`),
		spec(`"containers":[{"command":["sh","-c","curl -u user:SECRET https://example.com"]}]`),
		spec(`"containers":[{"command":["sh","-c","curl -sSu 'user:SECRET' https://example.com"]}]`),
		spec(`"containers":[{"command":["curl","--user=user:SECRET","https://example.com"]}]`),
		spec(`"containers":[{"command":["curl","-u","user:SECRET"]}]`),
		spec(`"containers":[{"args":["--proxy-user","user:SECRET"]}]`),
		`,"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"env\":[{\"name\":\"A\",\"value\":\"SECRET\"}]}]}}}}\n"}}`,
		`,"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"spec\":SECRET"}}`,
		`,"metadata":{"annotations":{"example.com/saved":"{\"a\":1,\"token\":\"SECRET\"}"}}`,
		`,"spec":{"rollout":{"gate":{"workflowType":"Smoke","input":{"account":{"key":["SECRET"]}}}}}`,
		`,"spec":{"rollout":{"gate":{"input":"SECRET"}}}`,
		`,"spec":{"rollout":{"steps":[{"rampPercentage":5},{"gate":{"input":{"SECRET":1}}}]}}`,
		`},"git":{"message":"use token=SECRET for now"`,
		`},"git":{"message":"curl -H 'Authorization: Bearer SECRET'"`,
		`},"git":{"message":"password: SECRET"`,
		`},"data":{"sessionToken":"SECRET"`,
		`,"metadata":{"labels":{"owner":"SECRET"}}`,    // by pointer
		`,"spec":{"custom":[{"deep":{"a":"SECRET"}}]}`, // by pointer, all of it
	}
}

func judged(input, message string) auditlog.Judged {
	return auditlog.Judged{Now: noon, Labels: map[string]string{"id": "bot-0", "version": "1.0.0"}, Input: json.RawMessage(input),
		Verdicts: rollout.Verdicts{PolicyDigest: "sha256:1", Spec: rollout.Verdict{Effect: rollout.Allow},
			Actions: map[string]rollout.Verdict{"Ramp/v2@10%": {Effect: rollout.HoldEffect, Findings: []rollout.Finding{
				{Package: "rampart.rollout", Rule: "acme.env", Effect: rollout.HoldEffect, Message: message, Evidence: json.RawMessage(`{"value":"` + message + `","` + message + `":1}`)}}}}}}
}

// A secret that is anywhere where it is masked is in no byte of what is written, even where a policy repeats it.
func TestSecretsAreWrittenNowhere(t *testing.T) {
	m := masker(t, "/input/deployment/metadata/labels/owner", "/input/deployment/spec/custom/*/deep")
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[A-Z][A-Za-z0-9+/_.]{7,30}[a-z0-9]`).Draw(t, "secret")
		place := rapid.SampledFrom(places()).Draw(t, "place")
		message := rapid.SampledFrom([]string{"fine", "the value is " + secret + ".", secret}).Draw(t, "message")
		d, err := auditlog.NewDecision(judged(strings.ReplaceAll(planted(place), "SECRET", secret), message), m)
		require.NoError(t, err)
		require.NotEmpty(t, d.Masked)

		var lines bytes.Buffer
		require.NoError(t, auditlog.WriteLines(&lines, d))
		require.NotContains(t, lines.String(), secret)
		again := collect(t, auditlog.ReadLines(context.Background(), &lines))
		require.Equal(t, []auditlog.Decision{d}, again)
	})
}

func TestWhatIsMasked(t *testing.T) {
	for name, c := range map[string]struct {
		input   string
		message string
		want    string
		masked  []string
	}{
		"variables by value, the rest of a variable stays": {
			input:  planted(spec(`"containers":[{"env":[{"name":"A","value":"one"},{"name":"B","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}},{"name":"C","value":""}]}]`)),
			want:   planted(spec(`"containers":[{"env":[{"name":"A","value":"***"},{"name":"B","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}},{"name":"C","value":""}]}]`)),
			masked: []string{"/input/deployment/spec/template/spec/containers/0/env/0/value"}},
		"keys are escaped in pointers": {
			input:  planted(`,"metadata":{"annotations":{"a~b/token":"x"}}`),
			want:   planted(`,"metadata":{"annotations":{"a~b/token":"***"}}`),
			masked: []string{"/input/deployment/metadata/annotations/a~0b~1token"}},
		"arguments that only look like it stay": {
			input: planted(spec(`"containers":[{"args":["--queue","checkout","--compass","north","--level=info","https://example.com:443/x"]}]`)),
			want:  planted(spec(`"containers":[{"args":["--queue","checkout","--compass","north","--level=info","https://example.com:443/x"]}]`))},
		"what names a credential, or only looks like one, stays": {
			input: planted(`,"spec":{"rollout":{"steps":[{"gate":{"workflowType":"Smoke","inputFrom":{"secretKeyRef":{"name":"s","key":"token"}}}}]},"template":{"spec":{"volumes":[{"secret":{"secretName":"tls"}}],"containers":[{"image":"example.com/token-service:1.2.3","name":"token"}]}}},"conflictToken":"AQ==","query":"token_errors == 0"`),
			want:  planted(`,"spec":{"rollout":{"steps":[{"gate":{"workflowType":"Smoke","inputFrom":{"secretKeyRef":{"name":"s","key":"token"}}}}]},"template":{"spec":{"volumes":[{"secret":{"secretName":"tls"}}],"containers":[{"image":"example.com/token-service:1.2.3","name":"token"}]}}},"conflictToken":"AQ==","query":"token_errors == 0"`)},
		"the input of a gate goes as a whole, the gate stays": {
			input:  planted(`,"spec":{"rollout":{"gate":{"workflowType":"Smoke","input":{"a":1}}}}`),
			want:   planted(`,"spec":{"rollout":{"gate":{"workflowType":"Smoke","input":"***"}}}`),
			masked: []string{"/input/deployment/spec/rollout/gate/input"}},
		"what kubectl applied goes as a whole, and words of it stay in the result": {
			input:   planted(`,"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"kind\":\"WorkerDeployment\"}"}}`),
			message: "a WorkerDeployment needs an owner",
			want:    planted(`,"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"***"}}`),
			masked:  []string{"/input/deployment/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"}},
		"the name beside a password stays": {
			input:  planted(spec(`"containers":[{"command":["sh","-c","curl -u deployer:pw1234 x"]}]`)),
			want:   planted(spec(`"containers":[{"command":["sh","-c","curl -u deployer:*** x"]}]`)),
			masked: []string{"/input/deployment/spec/template/spec/containers/0/command/2"}},
		"what is not masked elsewhere is not masked in the result": {
			input:   planted(spec(`"containers":[{"env":[{"name":"QUEUE","value":"checkout"}]}]`)),
			message: "the queue checkout has no pollers",
			want:    planted(spec(`"containers":[{"env":[{"name":"QUEUE","value":"***"}]}]`)),
			masked:  []string{"/input/deployment/spec/template/spec/containers/0/env/0/value"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := auditlog.NewDecision(judged(c.input, c.message), masker(t))
			require.NoError(t, err)
			require.JSONEq(t, c.want, string(d.Input))
			require.Equal(t, c.masked, d.Masked)
			require.Contains(t, string(d.Result), c.message)
		})
	}
}

func TestPointersThatCannotBeUsed(t *testing.T) {
	for pointer, want := range map[string]string{
		"input/x":    "begins with /",
		"/labels/id": "/input/ or /result/",
		"/input":     "something below /input",
		"/input//x":  "empty segments",
		"/input/a~2": "~ is written ~0",
	} {
		_, err := mask.New(pointer)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, pointer)
	}
}

func TestIDSaysTheContent(t *testing.T) {
	one := func(change func(*auditlog.Judged)) string {
		j := judged(planted(""), "m")
		change(&j)
		d, err := auditlog.NewDecision(j, masker(t))
		require.NoError(t, err)
		return d.ID
	}
	same := one(func(*auditlog.Judged) {})
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, same)
	require.Equal(t, same, one(func(j *auditlog.Judged) { j.Input = append([]byte(" \n"), j.Input...) }))
	for _, change := range []func(*auditlog.Judged){
		func(j *auditlog.Judged) { j.Now = j.Now.Add(time.Second) },
		func(j *auditlog.Judged) { j.Labels = map[string]string{"id": "bot-1", "version": "1.0.0"} },
		func(j *auditlog.Judged) { j.Verdicts.PolicyDigest = "sha256:2" },
		func(j *auditlog.Judged) { j.Input = []byte(strings.Replace(planted(""), "checkout", "search", 1)) },
	} {
		require.NotEqual(t, same, one(change))
	}
	_, err := auditlog.NewDecision(auditlog.Judged{Now: noon, Input: []byte(`{"deployment":{"name":"x"}}`)}, masker(t))
	require.ErrorContains(t, err, `namespace "" and name "x"`)
}

func TestLines(t *testing.T) {
	d, err := auditlog.NewDecision(judged(planted(""), "m < 1 & more"), masker(t))
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, auditlog.WriteLines(&b, d, d))
	again := collect(t, auditlog.ReadLines(t.Context(), strings.NewReader("\n"+b.String())))
	require.Equal(t, []auditlog.Decision{d, d}, again)
	for _, err = range auditlog.ReadLines(t.Context(), strings.NewReader(b.String()+"{")) {
	}
	require.ErrorContains(t, err, "line 3")
}

// What one decision costs from its JSON to a masked one that can be recorded.
func BenchmarkNew(b *testing.B) {
	m := masker(b)
	played := company{deployments: 1, days: 2, start: noon}.each(b, 0, policy.Compile(policy.Config{}))
	require.NotEmpty(b, played)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d := played[i%len(played)]
		_, err := auditlog.NewDecision(auditlog.Judged{Now: d.Timestamp, Input: d.Input}, m)
		require.NoError(b, err)
	}
}
