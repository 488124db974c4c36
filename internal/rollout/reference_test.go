package rollout_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

const referring = `apiVersion: apps/v1
kind: Deployment
metadata: {name: checkout-v1, namespace: shop}
spec:
  template:
    metadata: {annotations: {secretRef: "no reference"}}
    spec:
      serviceAccountName: checkout
      imagePullSecrets: [{name: registry}]
      nodeSelector: {serviceAccountName: other, secret: none}
      initContainers:
      - {name: init, envFrom: [{configMapRef: {name: init}}, {secretRef: {name: init, optional: true}}]}
      containers:
      - name: worker
        env:
        - {name: A, valueFrom: {configMapKeyRef: {name: settings, key: a, optional: true}}}
        - {name: B, valueFrom: {secretKeyRef: {name: login, key: b}}}
        - {name: C, value: configMap}
        - {name: D, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
      - {name: beside, envFrom: [{configMapRef: {name: settings}}]}
      volumes:
      - {name: a, configMap: {name: files}}
      - {name: b, secret: {secretName: certificate}}
      - {name: c, persistentVolumeClaim: {claimName: data}}
      - name: d
        projected:
          sources:
          - {configMap: {name: projected}}
          - {secret: {name: projected, optional: true}}
          - {serviceAccountToken: {path: token}}
      - {name: e, csi: {driver: secrets.example.com, nodePublishSecretRef: {name: driver}}}
      - {name: f, azureFile: {shareName: share, secretName: share}}
      - {name: g, emptyDir: {}}
`

// Everything that a pod template can name is listed once, whichever way it is named; what one place needs is needed.
func TestReferencesOfPodTemplatesAreListedOnce(t *testing.T) {
	zero := int32(0)
	record := rollout.Record{
		Routing: &v1alpha1.Routing{Spec: v1alpha1.RoutingSpec{
			Desired: v1alpha1.DesiredRouting{Current: "v3", Ramping: &v1alpha1.DesiredRamp{BuildID: "v4"}},
			Versions: []v1alpha1.RecordedVersion{
				{BuildID: "v1", Files: map[string]string{"deployment.yaml": "a", "hpa.yaml": "b"},
					Guard: v1alpha1.GuardOff, Replicas: &zero},
				{BuildID: "v2", Files: map[string]string{"deployment.yaml": "c"}},
				{BuildID: "v3", Files: map[string]string{"deployment.yaml": "d"}},
				{BuildID: "v4"}, {BuildID: "v5"},
			},
		}},
		Status: &v1alpha1.WorkerDeployment{Status: &v1alpha1.WorkerDeploymentStatus{
			CurrentVersion:     &v1alpha1.VersionStatus{BuildID: "v2", Status: "Current"},
			DeprecatedVersions: []v1alpha1.VersionStatus{{BuildID: "v1", Status: "Draining"}},
		}},
		Files: map[string]rollout.File{
			"versions/v1/deployment.yaml": {Data: referring},
			"versions/v1/hpa.yaml":        {Data: "{kind: HorizontalPodAutoscaler, spec: {scaleTargetRef: {name: a}}}"},
			"versions/v2/deployment.yaml": {Data: "a: [b"},
		},
	}
	got := record.References()
	is := func(kind, name string) rollout.Reference { return rollout.Reference{Kind: kind, Name: name} }
	may := func(name string) rollout.Reference {
		return rollout.Reference{Kind: "Secret", Name: name, Optional: true}
	}
	v1 := rollout.VersionReferences{BuildID: "v1", State: rollout.StatusDraining, ScaledDown: true}
	v1.Objects = []rollout.Reference{
		is("ConfigMap", "files"), is("ConfigMap", "init"), is("ConfigMap", "projected"), is("ConfigMap", "settings"),
		is("PersistentVolumeClaim", "data"), is("Secret", "certificate"), is("Secret", "driver"), may("init"),
		is("Secret", "login"), may("projected"), is("Secret", "registry"), is("Secret", "share"),
		is("ServiceAccount", "checkout"),
	}
	require.Equal(t, v1, got[0])
	require.Contains(t, got[1].Problem, "versions/v2/deployment.yaml cannot be read: ")
	require.Equal(t, rollout.StatusCurrent, got[1].State)
	require.Equal(t, rollout.VersionReferences{BuildID: "v3", State: rollout.StatusCurrent, Objects: []rollout.Reference{},
		Problem: "versions/v3/deployment.yaml cannot be read: it holds no object"}, got[2])
	require.Equal(t, rollout.StatusRamping, got[3].State, "by the desired routing, where the status says nothing")
	none := []rollout.Reference{}
	require.Equal(t, rollout.VersionReferences{BuildID: "v5", State: rollout.StatusUnknown, Objects: none}, got[4])
	require.Nil(t, rollout.Record{}.References())
}
