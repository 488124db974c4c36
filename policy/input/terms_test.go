package input

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

const plainSpec = `apiVersion: temporal.io/v1alpha1
kind: TemporalWorkerDeployment
metadata: {name: checkout, namespace: payments}
spec:
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: payments}
  rollout: {strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 1m}]}
  template: {spec: {containers: [{name: worker, image: "registry.example/checkout:1"}]}}
`

// A spec as terms is what its JSON gives, whatever fields it has.
func TestTerms(t *testing.T) {
	docs, problems := v1alpha1.Decode("workers/checkout.yaml", []byte(plainSpec))
	require.Empty(t, problems)
	given := docs[0].Object.(*v1alpha1.WorkerDeployment).Spec
	full := given
	fill(reflect.ValueOf(&full).Elem(), 0)
	for name, s := range map[string]v1alpha1.WorkerDeploymentSpec{
		"empty": {}, "plain": given, "everything": full,
	} {
		want, err := plain(s)
		require.NoError(t, err, name)
		got, err := NewEncoder(reflect.TypeFor[v1alpha1.WorkerDeploymentSpec]()).Encode(reflect.ValueOf(s))
		require.NoError(t, err, name)
		require.Equal(t, want.String(), got.String(), name)
		require.Equal(t, want.Hash(), got.Hash(), name)
	}
}

// fill sets every field that can be set.
func fill(v reflect.Value, depth int) {
	switch {
	case depth > 30:
		return
	case v.Type() == reflect.TypeFor[resource.Quantity]():
		v.Set(reflect.ValueOf(resource.MustParse("1500m")))
		return
	case v.Type() == reflect.TypeFor[intstr.IntOrString]():
		v.Set(reflect.ValueOf(intstr.FromString("http")))
		return
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(`{"a":1}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("x<&>é")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(77777)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.25)
	}
}
