package v1alpha1_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/randfill"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// throughJSON is what Tree is to give, the long way.
func throughJSON(t *testing.T, object any) map[string]any {
	t.Helper()
	data, err := json.Marshal(object)
	require.NoError(t, err)
	value, err := v1alpha1.DecodeJSON(data)
	require.NoError(t, err)
	return value.(map[string]any)
}

func TestTreeIsWhatJSONHolds(t *testing.T) {
	raw := []string{`{"a":1.50,"b":[1e3,12345678901234567890,null]}`, `{}`, `{"<":"&\u2028"}`}
	for seed := range int64(300) {
		fill := randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).Funcs(
			func(s *string, c randfill.Continue) {
				*s = []string{"", "v1", "<a & b>", "\u2028", "not UTF-8: \xff\xfe", "\n\"\\"}[c.Intn(6)]
			},
			func(f *float64, c randfill.Continue) {
				*f = []float64{0, math.Copysign(0, -1), 0.1, -12.5, 100, 1e21, 1e-7}[c.Intn(7)]
			},
			func(x *v1alpha1.Time, c randfill.Continue) {
				*x = v1alpha1.Time{Time: []time.Time{{}, time.Unix(c.Int63n(1<<32), 0), time.Unix(0, 1<<60+7)}[c.Intn(3)]}
			},
			func(d *v1alpha1.Duration, c randfill.Continue) { d.Duration = time.Duration(c.Int63n(1 << 45)) },
			func(r *json.RawMessage, c randfill.Continue) { *r = json.RawMessage(raw[c.Intn(len(raw))]) },
			func(p *v1alpha1.PodTemplate, c randfill.Continue) {
				*p = v1alpha1.PodTemplate{}
				if i := c.Intn(len(raw) + 1); i < len(raw) {
					p.Raw = []byte(raw[i])
				}
			},
		)
		var w v1alpha1.WorkerDeployment
		fill.Fill(&w)
		w.Status = nil
		tree, err := w.Tree()
		require.NoError(t, err)
		require.Equal(t, throughJSON(t, w), tree, "worker deployment %d", seed)
		tree, err = w.Spec.Tree()
		require.NoError(t, err)
		require.Equal(t, throughJSON(t, w.Spec), tree, "spec %d", seed)

		var r v1alpha1.Routing
		fill.Fill(&r)
		r.Whole = nil
		tree, err = r.Tree()
		require.NoError(t, err)
		require.Equal(t, throughJSON(t, r), tree, "record %d", seed)
	}
}

func TestTreeHasFieldsThatAreNotKnown(t *testing.T) {
	data, err := os.ReadFile("testdata/routing.yaml")
	require.NoError(t, err)
	data = append(data, "  fromTheFuture: {a: [1.50]}\n"...)
	documents, _ := v1alpha1.Decode("routing.yaml", data)
	require.Len(t, documents, 1)
	r := documents[0].Object.(*v1alpha1.Routing)
	tree, err := r.Tree()
	require.NoError(t, err)
	require.Equal(t, throughJSON(t, r), tree)
	require.Contains(t, tree["spec"], "fromTheFuture")
}

func TestTreeSaysWhatIsNotJSON(t *testing.T) {
	var w v1alpha1.WorkerDeployment
	w.Spec.Template.Raw = []byte("{")
	_, err := w.Tree()
	require.ErrorContains(t, err, "read JSON")
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		var s v1alpha1.WorkerDeploymentSpec
		s.Rollout.Steps = []v1alpha1.RolloutStep{{RampPercentage: f}}
		_, err = s.Tree()
		require.ErrorContains(t, err, "unsupported value")
	}
	r := v1alpha1.Routing{Whole: []byte("{")}
	_, err = r.Tree()
	require.ErrorContains(t, err, "read JSON")
}
