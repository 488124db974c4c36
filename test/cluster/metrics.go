package cluster

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const externalMetrics = "external.metrics.k8s.io/v1beta1"

// Metrics serves external metrics to autoscalers until the test ends. value gives a metric for the labels that an
// autoscaler asks for, and whether there is any.
func (s *Server) Metrics(t testing.TB, value func(labels labels.Set) (string, bool)) {
	t.Helper()
	answer := func(w http.ResponseWriter, object any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(object); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /apis/"+externalMetrics, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
			GroupVersion: externalMetrics, APIResources: []metav1.APIResource{
				{Name: "externalmetrics", Namespaced: true, Kind: "ExternalMetricValueList",
					Verbs: metav1.Verbs{"get"}}}})
	})
	mux.HandleFunc("GET /apis/"+externalMetrics+"/namespaces/{namespace}/{metric}", func(w http.ResponseWriter,
		r *http.Request) {
		asked, err := labels.ConvertSelectorToLabelsMap(r.FormValue("labelSelector"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		items := []map[string]any{}
		if v, there := value(asked); there {
			items = append(items, map[string]any{"metricName": r.PathValue("metric"), "metricLabels": asked,
				"timestamp": metav1.NewTime(time.Now()), "value": v})
		}
		answer(w, map[string]any{"kind": "ExternalMetricValueList", "apiVersion": externalMetrics,
			"metadata": struct{}{}, "items": items})
	})
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	s.Kubectl(t, fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: metrics, namespace: kube-system}
spec: {type: ExternalName, externalName: localhost, ports: [{port: %[1]s}]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.external.metrics.k8s.io}
spec:
  group: external.metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {namespace: kube-system, name: metrics, port: %[1]s}
`, port), "apply", "-f", "-")
	s.Kubectl(t, "", "wait", "--for=condition=Available", "apiservice/v1beta1.external.metrics.k8s.io", "--timeout=30s")
}
