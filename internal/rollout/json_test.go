package rollout_test

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// filled sets every field of a value to something, and now and then to nothing. What survives JSON only when it is
// filled, or only when it is not, is found.
func filled(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(r.Int63n(2e9)+1, r.Int63n(1e9)).UTC()))
		return
	case v1alpha1.Time:
		v.Set(reflect.ValueOf(v1alpha1.NewTime(time.Unix(r.Int63n(2e9)+1, 0))))
		return
	case v1alpha1.PodTemplate:
		v.Set(reflect.ValueOf(v1alpha1.PodTemplate{Raw: json.RawMessage(`{"spec":{"containers":[{"image":"app:v1"}]}}`), FirstImage: "app:v1"}))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(`{"a":1}`)))
		return
	}
	if r.Intn(4) == 0 || depth > 12 {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" && v.Field(i).CanSet() {
				filled(r, v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(r, v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+r.Intn(2), 2))
		for i := range v.Len() {
			filled(r, v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		e := reflect.New(v.Type().Elem()).Elem()
		filled(r, e, depth+1)
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), e)
	case reflect.String:
		v.SetString([]string{"a", "b", "c"}[r.Intn(3)])
	case reflect.Bool:
		v.SetBool(r.Intn(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.Intn(100)))
	case reflect.Uint8:
		v.SetUint(uint64(r.Intn(256)))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(r.Intn(1000)) / 10)
	}
}

func survives[T any](t *testing.T) {
	t.Helper()
	for seed := range int64(200) {
		var in, out T
		filled(rand.New(rand.NewSource(seed)), reflect.ValueOf(&in).Elem(), 0)
		data, err := json.Marshal(in)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &out))
		if diff := cmp.Diff(in, out, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("seed %d (-in +out):\n%s", seed, diff)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Run("Snapshot", survives[rollout.Snapshot])
	t.Run("Proposal", survives[rollout.Proposal])
	t.Run("Verdicts", survives[rollout.Verdicts])
	t.Run("Plan", survives[rollout.Plan])
	t.Run("Ask", survives[rollout.Ask])
	t.Run("Timetable", survives[rollout.Timetable])
}

// TestKnownZero: a count that is known to be zero is not the same as an unknown count.
func TestKnownZero(t *testing.T) {
	data, err := json.Marshal(rollout.VersionObservation{OpenPinned: rollout.Counted(0)})
	require.NoError(t, err)
	var out rollout.VersionObservation
	require.NoError(t, json.Unmarshal(data, &out))
	require.True(t, out.OpenPinned.None())
	require.False(t, rollout.Count{}.None())
	require.False(t, rollout.Counted(1).None())
}
