package v1alpha1

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// always are the fields that a record of the first format always has. A field that comes later must be left out where
// it is not used: else records of before would have another digest, and be written anew by an upgrade.
var always = map[reflect.Type]string{
	reflect.TypeFor[RoutingSpec]():        "desired specPath temporalNamespace workerDeployment",
	reflect.TypeFor[RecordedConnection](): "name spec",
	reflect.TypeFor[DesiredRouting]():     "current",
	reflect.TypeFor[DesiredRamp]():        "buildID percentage",
	reflect.TypeFor[RoutingBasis]():       "current",
	reflect.TypeFor[RoutingTarget]():      "attempt buildID since templateHash",
	reflect.TypeFor[RecordedProposal]():   "buildID from since templateHash to",
	reflect.TypeFor[RecordedVersion]():    "buildID buildIDFrom connectionHash createdAt deployment files guard templateHash",
	reflect.TypeFor[RecordedPool]():       "deployment name",
	reflect.TypeFor[RecordedEvacuation](): "attempt jobID since stage state",
	reflect.TypeFor[Promotion]():          "at buildID",
	reflect.TypeFor[Bar]():                "at buildID by reason templateHash",
	reflect.TypeFor[Hold]():               "at by kind reason",
	reflect.TypeFor[SetAside]():           "at buildID reason",
	reflect.TypeFor[Asked]():              "at by",
	reflect.TypeFor[Retire]():             "at by current",
}

func TestNewFieldsOfRecordsAreLeftOut(t *testing.T) {
	seen := map[*shape]bool{}
	var walk func(*shape)
	walk = func(s *shape) {
		if s == nil || seen[s] {
			return
		}
		seen[s] = true
		walk(s.elem)
		var names []string
		for _, f := range s.fields {
			walk(f.shape)
			if f.omits == omitsNothing {
				names = append(names, f.name)
			}
		}
		if want, ok := always[s.typ]; ok && s.form == formObject {
			slices.Sort(names)
			require.Equal(t, want, strings.Join(names, " "), s.typ)
		}
	}
	walk(shapes().routingSpec)
}

// What the seal is made over is what is written, whichever way it is made.
func TestSealIsOfWhatIsWritten(t *testing.T) {
	stuck, none := int64(0), int32(0)
	for name, spec := range map[string]RoutingSpec{
		"empty": {},
		"zeros": {Desired: DesiredRouting{Ramping: &DesiredRamp{}}, Basis: &RoutingBasis{}, Target: &RoutingTarget{StuckBefore: &stuck, Approved: &Asked{}},
			Versions: []RecordedVersion{{Replicas: &none, Files: map[string]string{"a": ""}}}, Proposal: &RecordedProposal{}, Hold: &Hold{}, Retire: &Retire{}},
		"some": {Connection: &RecordedConnection{Spec: ConnectionSpec{TLS: &ConnectionTLS{}}}, Bars: []Bar{{By: "a <b> &\u2028"}},
			Desired: DesiredRouting{Current: "v1", Ramping: &DesiredRamp{BuildID: "v2", Percentage: 0.1}}, Promotions: []Promotion{{BuildID: "v1"}}},
	} {
		fast := string(appendWritten(nil, shapes().routingSpec, reflect.ValueOf(&spec).Elem()))
		data, err := json.Marshal(spec)
		require.NoError(t, err)
		written, err := CanonicalJSON(data)
		require.NoError(t, err)
		require.Equal(t, string(written), fast, name)
	}
}

// A misspelled field of what people edit is an error, not a field of a newer release.
func TestMisspelledDesired(t *testing.T) {
	const record = `apiVersion: rampart.dev/v1alpha1
kind: Routing
metadata: {name: x, namespace: shop}
spec:
  workerDeployment: shop/x
  temporalNamespace: shop
  specPath: x.yaml
  desired: {current: v1, ramping: {buildID: v2, percentage: 5}}
`
	for _, c := range []struct{ old, new, want string }{
		{"current:", "currennt:", "did you mean current?"},
		{"ramping:", "ramp:", "did you mean ramping?"},
		{"percentage:", "percentge:", "did you mean percentage?"},
		{"{buildID: v2, ", "{", "spec.desired.ramping.buildID: is required"},
		{"{current: v1, ", "{", "spec.desired.current: is required"},
		{"  desired:", "  minReader: 0\n  desired:", "spec.minReader: must be at least 1, got 0"},
		{"  desired:", "  minReader: soon\n  desired:", "spec.minReader"},
	} {
		require.Contains(t, record, c.old)
		documents, problems := Decode("routing.yaml", []byte(strings.Replace(record, c.old, c.new, 1)))
		require.True(t, HasErrors(problems), c.new)
		require.Nil(t, documents[0].Object)
		require.Contains(t, problems[0].String(), c.want)
	}
	_, problems := Decode("routing.yaml", []byte(strings.Replace(record, "current: v1", "current: v1, quorum: 3", 1)))
	require.Len(t, problems, 1)
	require.Equal(t, Warning, problems[0].Severity)
}
