package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Containers are processes with the manifest's environment. An image that is not there, a container that fails and a
// variable without a source are what a cluster calls them. What is deleted ends.
func TestKubeletRunsContainersAsProcesses(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "said")
	s := StartNode(t, map[string]Image{
		"shell:v1": {Command: []string{"sh", "-c"}}, "shell:fails": {Command: []string{"sh", "-c", "exit 3"}},
	})
	get := func(want string, args ...string) {
		t.Helper()
		s.await(t, want, append([]string{"get", "-n", "shop"}, args...)...)
	}
	s.Kubectl(t, "", "create", "namespace", "shop")
	s.Kubectl(t, "", "create", "-n", "shop", "configmap", "plain", "--from-literal=city=Oslo")
	s.Kubectl(t, "", "create", "-n", "shop", "secret", "generic", "hidden", "--from-literal=key=s3cret", "--from-literal=other=s3cret")
	s.Kubectl(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: good, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: good}}
  template:
    metadata: {labels: {app: good}}
    spec:
      containers:
      - name: worker
        image: shell:v1
        args: ["trap 'echo ended >> `+out+`; exit 0' TERM; echo $CITY $KEY $(NAME) $IN $(ls -R /etc/hidden | grep -v :) $(cat /etc/hidden/in/token) >> `+out+`; while :; do sleep 0.1; done"]
        env:
        - {name: NAME, value: worker}
        - {name: CITY, valueFrom: {configMapKeyRef: {name: plain, key: city}}}
        - {name: KEY, valueFrom: {secretKeyRef: {name: hidden, key: key}}}
        - {name: IN, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        volumeMounts: [{name: hidden, mountPath: /etc/hidden}]
      volumes:
      - {name: hidden, secret: {secretName: hidden, items: [{key: key, path: in/token}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: unknown, namespace: shop}
spec: {containers: [{name: worker, image: "nowhere:v1"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: fails, namespace: shop}
spec: {containers: [{name: worker, image: "shell:fails"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: lacks, namespace: shop}
spec: {containers: [{name: worker, image: "shell:v1", env: [{name: KEY, valueFrom: {secretKeyRef: {name: none, key: key}}}]}]}
`, "apply", "-f", "-")
	get("2", "deployment", "good", "-o", "jsonpath={.status.readyReplicas}")
	waits := "jsonpath={.status.containerStatuses[0].state.waiting.reason}"
	get("ErrImagePull", "pod", "unknown", "-o", waits)
	get("CrashLoopBackOff", "pod", "fails", "-o", waits)
	get("CreateContainerConfigError", "pod", "lacks", "-o", waits)
	eventually(t, func() error { // both have begun
		text, err := os.ReadFile(out)
		if err == nil && strings.Count(string(text), "Oslo") < 2 {
			err = errors.New("not both have said something")
		}
		return err
	})
	s.Kubectl(t, "", "delete", "-n", "shop", "deployment", "good")
	get("fails lacks unknown", "pods", "-o", "jsonpath={.items[*].metadata.name}")
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, "Oslo s3cret worker shop in token s3cret\nOslo s3cret worker shop in token s3cret\nended\nended\n", string(text))
}
