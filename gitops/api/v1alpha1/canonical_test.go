package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

func TestCanonicalJSON(t *testing.T) {
	tests := []struct{ in, want string }{
		{`{"b":1,"a":[true,false,null]}`, `{"a":[true,false,null],"b":1}`},
		{" [ ] ", `[]`},
		{`"<a&b>"`, `"<a&b>"`},
		{`"\u003c\u0041\/\u00e9\u2028"`, "\"<A/é\u2028\""},
		{`"\b\f\n\r\t\u0000\u001f\"\\"`, `"\b\f\n\r\t\u0000\u001f\"\\"`},
		{`"\ud83d\ude00\ud83d"`, "\"😀\ufffd\""},
		{`1.0`, `1`}, {`1e0`, `1`}, {`-0`, `0`}, {`-0.0`, `0`}, {`0.50`, `0.5`}, {`1e21`, `1e+21`}, {`1e20`, `100000000000000000000`},
		{`0.000001`, `0.000001`}, {`1e-7`, `1e-7`}, {`12345678901234567890`, `12345678901234567890`},
		{`9007199254740993`, `9007199254740993`}, {`-9223372036854775808`, `-9223372036854775808`},
		{`123456789012345678901`, `123456789012345680000`},
	}
	for _, test := range tests {
		got, err := v1alpha1.CanonicalJSON([]byte(test.in))
		require.NoError(t, err, test.in)
		require.Equal(t, test.want, string(got))
		again, err := v1alpha1.CanonicalJSON(got)
		require.NoError(t, err)
		require.Equal(t, test.want, string(again))
	}
	for _, in := range []string{"", "{", "1 2", `{"a":1e999}`, "nul"} {
		_, err := v1alpha1.CanonicalJSON([]byte(in))
		require.Error(t, err, in)
	}
}

// anyJSON draws a value, and its text with keys, white space and escapes at random.
func anyJSON(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 6
		if depth == 0 {
			kinds = 4
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return rapid.OneOf(rapid.Float64Range(-1e6, 1e6), rapid.Map(rapid.IntRange(-1000, 1000), func(i int) float64 { return float64(i) })).Draw(t, "number")
		case 3:
			return rapid.StringMatching(`[ -~éß日]{0,8}`).Draw(t, "string")
		case 4:
			return rapid.SliceOfN(anyJSON(depth-1), 0, 4).Draw(t, "list")
		default:
			return rapid.MapOfN(rapid.StringMatching(`[a-z~"é.]{1,5}`), anyJSON(depth-1), 0, 4).Draw(t, "object")
		}
	})
}

func shuffled(t *rapid.T, v any) string {
	switch v := v.(type) {
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = shuffled(t, item)
		}
		return "[ " + strings.Join(items, ",\n ") + "]"
	case map[string]any:
		fields := make([]string, 0, len(v))
		for _, key := range rapid.Permutation(slices.Sorted(maps.Keys(v))).Draw(t, "order") {
			fields = append(fields, shuffled(t, key)+" : "+shuffled(t, v[key]))
		}
		return "{" + strings.Join(fields, ", ") + " }"
	default:
		encoded, err := json.Marshal(v)
		require.NoError(t, err)
		return string(encoded)
	}
}

// TestCanonicalIsIndependentOfNotation: two notations of one value are the same bytes. That holds for CanonicalJSON and
// for the raw part of a decoded object, and the bytes are still that value.
func TestCanonicalIsIndependentOfNotation(t *testing.T) {
	raw := func(t *rapid.T, text string) string {
		const template = `{"apiVersion": "temporal.io/v1alpha1", "kind": "WorkerDeployment", "metadata": {"name": "a"}, "spec": {
			"workerOptions": {"connectionRef": {"name": "c"}, "temporalNamespace": "d"},
			"rollout": {"strategy": "Manual", "gate": {"workflowType": "x", "input": %s}},
			"template": {"spec": {"containers": [{"name": "e", "image": "f"}]}}}}`
		documents, problems := v1alpha1.Decode("x.json", fmt.Appendf(nil, template, text))
		require.False(t, v1alpha1.HasErrors(problems), "%v", problems)
		return string(documents[0].Object.(*v1alpha1.WorkerDeployment).Spec.Rollout.Gate.Input)
	}
	rapid.Check(t, func(t *rapid.T) {
		value := anyJSON(3).Draw(t, "value")
		first, second := shuffled(t, value), shuffled(t, value)
		canonical, err := v1alpha1.CanonicalJSON([]byte(first))
		require.NoError(t, err)
		other, err := v1alpha1.CanonicalJSON([]byte(second))
		require.NoError(t, err)
		require.Equal(t, string(canonical), string(other))
		require.JSONEq(t, first, string(canonical))
		if value != nil {
			require.Equal(t, string(canonical), raw(t, second))
		}
	})
}

// TestTemplateAsWritten: what Kubernetes would add, drop or rewrite stays as the user wrote it.
func TestTemplateAsWritten(t *testing.T) {
	const text = `
apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata: {name: a}
spec:
  workerOptions: {connectionRef: {name: c}, temporalNamespace: d}
  rollout: {strategy: Manual}
  template:
    metadata: {creationTimestamp: null, annotations: {}}
    spec:
      containers:
        - name: e
          image: f
          args: ["<&>", "1"]
          resources: {limits: {cpu: 1000m, memory: 1.50, ephemeral-storage: 1e3}}
      tolerations: []
      volumes: [{name: a, configMap: {name: b, defaultMode: 0644}}]
`
	documents, problems := v1alpha1.Decode("x.yaml", []byte(text))
	require.Empty(t, problems)
	template := documents[0].Object.(*v1alpha1.WorkerDeployment).Spec.Template
	require.Equal(t, `{"metadata":{"annotations":{},"creationTimestamp":null},"spec":{"containers":[{"args":["<&>","1"],"image":"f","name":"e",`+
		`"resources":{"limits":{"cpu":"1000m","ephemeral-storage":1000,"memory":1.5}}}],"tolerations":[],`+
		`"volumes":[{"configMap":{"defaultMode":420,"name":"b"},"name":"a"}]}}`, string(template.Raw))
	require.Equal(t, "f", template.FirstImage)

	encoded, err := json.Marshal(template)
	require.NoError(t, err)
	var again v1alpha1.PodTemplate
	require.NoError(t, json.Unmarshal(encoded, &again))
	require.Equal(t, template, again)
	require.NoError(t, json.Unmarshal([]byte("null"), &again))
	require.Equal(t, v1alpha1.PodTemplate{}, again)
	encoded, err = json.Marshal(again)
	require.NoError(t, err)
	require.Equal(t, "null", string(encoded))
	require.Error(t, json.Unmarshal([]byte(`{"spec": 5}`), &again))
}
