package render

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/statetable"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden holds each file as it is written in Git, change by change.
func TestGolden(t *testing.T) {
	for name, play := range goldens {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			play(t, func(step string, changes []rollout.FileChange) { b.WriteString(dump(step, changes)) })
			file := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".txtar")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			if diff := cmp.Diff(string(want), b.String()); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

type show func(step string, changes []rollout.FileChange)

// manifestOnly leaves out what every golden would repeat.
func manifestOnly(changes []rollout.FileChange) []rollout.FileChange {
	var out []rollout.FileChange
	for _, c := range changes {
		if strings.Contains(c.Path, "/"+layout.Versions+"/") {
			out = append(out, c)
		}
	}
	return out
}

func with(spec string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(spec) }

var goldens = map[string]func(t *testing.T, show show){
	"new version": func(t *testing.T, show show) {
		s := newScene(t, checkoutSpec, noAuth())
		show("created", s.commit())
		show("again", s.commit())
	},
	"mutual tls": func(t *testing.T, show show) {
		s := newScene(t, checkoutSpec, mutualTLS("temporal-client"))
		show("created", manifestOnly(s.commit()))
	},
	"api key": func(t *testing.T, show show) {
		s := newScene(t, checkoutSpec, apiKey("temporal-key", "token"))
		show("created", manifestOnly(s.commit()))
	},
	"server name": func(t *testing.T, show show) {
		s := newScene(t, checkoutSpec, withServerName(noAuth(), "temporal.internal"))
		show("created", manifestOnly(s.commit()))
	},
	"certificates to trust": func(t *testing.T, show show) {
		trusting := withCA(apiKey("temporal-key", "token"), "temporal-server-ca")
		s := newScene(t, checkoutSpec, trusting)
		show("created", manifestOnly(s.commit()))
		s = newScene(t, with(checkoutSpec, "        env:\n", "        env:\n        - {name: TEMPORAL_TLS_SERVER_CA_CERT_PATH, value: /certs/own.crt}\n"), trusting)
		show("at-the-container's-own-path", manifestOnly(s.commit()))
	},
	"legacy names": func(t *testing.T, show show) {
		s := newScene(t, checkoutSpec, withServerName(mutualTLS("temporal-client"), "temporal.internal"))
		s.plan.Environment.WorkerEnv = v1alpha1.EnvWithLegacyNames
		show("created", manifestOnly(s.commit()))
	},
	"autoscaled": func(t *testing.T, show show) {
		s := newScene(t, with(checkoutSpec, "  replicas: 3\n", ""), noAuth())
		show("created", manifestOnly(s.commit()))
		s.write(rollout.VersionWrite{Op: rollout.EditVersion, Replicas: replicas(0), Guard: v1alpha1.GuardOff})
		show("scaled-down", manifestOnly(s.commit()))
	},
	"several containers": func(t *testing.T, show show) {
		s := newScene(t, with(checkoutSpec, "      containers:\n", `      initContainers:
      - {name: migrate, image: "registry.example.com/payments/migrate:1"}
      volumes:
      - {name: scratch, emptyDir: {}}
      containers:
      - name: sidecar
        image: registry.example.com/sidecar:1.0
        command:
        - sh
        - -c
        - |
          set -e
          exec sidecar
        volumeMounts:
        - {name: scratch, mountPath: /scratch}
`), mutualTLS("temporal-client"))
		show("created", manifestOnly(s.commit()))
	},
	"strategy and annotations": func(t *testing.T, show show) {
		s := newScene(t, with(checkoutSpec, "  replicas: 3\n", `  replicas: 3
  minReadySeconds: 5
  progressDeadlineSeconds: 120
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 0}}
`, "      labels: {app: checkout}\n", `      labels: {app: checkout}
      annotations:
        prometheus.io/scrape: "true"
        argocd.argoproj.io/sync-options: Replace=true, Validate=false
        kustomize.toolkit.fluxcd.io/prune: enabled
`), noAuth())
		show("created", manifestOnly(s.commit()))
		s.write(rollout.VersionWrite{Op: rollout.EditVersion, Replicas: replicas(0), Guard: v1alpha1.GuardOff})
		show("lifted", manifestOnly(s.commit()))
		s.write(rollout.VersionWrite{Op: rollout.EditVersion, Replicas: replicas(3), Guard: v1alpha1.GuardOn})
		show("restored", manifestOnly(s.commit()))
	},
	"edit": func(t *testing.T, show show) {
		s := newScene(t, checkoutSpec, noAuth())
		s.commit()
		for _, e := range []struct {
			step     string
			replicas *int32
			guard    v1alpha1.Guard
		}{
			{"scaled", replicas(5), v1alpha1.GuardOn}, {"nothing", replicas(5), v1alpha1.GuardOn},
			{"left-out", nil, v1alpha1.GuardOn}, {"retired", replicas(0), v1alpha1.GuardOff},
		} {
			s.write(rollout.VersionWrite{Op: rollout.EditVersion, Replicas: e.replicas, Guard: e.guard})
			show(e.step, manifestOnly(s.commit()))
		}
	},
	"reconnect": func(t *testing.T, show show) {
		s := newScene(t, checkoutSpec, noAuth())
		s.commit()
		for _, c := range []struct {
			step string
			to   v1alpha1.ConnectionSpec
		}{
			{"none-to-mutual-tls", mutualTLS("temporal-client")},
			{"another-certificate", mutualTLS("temporal-client-2")},
			{"mutual-tls-to-api-key", apiKey("temporal-key", "token")},
			{"another-secret", apiKey("temporal-key-2", "token")},
			{"another-key", apiKey("temporal-key-2", "api-key")},
			{"api-key-to-none", withServerName(noAuth(), "temporal.internal")},
			{"certificates-to-trust", withCA(noAuth(), "temporal-server-ca")},
			{"other-certificates-to-trust", withCA(noAuth(), "temporal-ca-2")},
			{"certificates-to-trust-to-none", noAuth()},
		} {
			s.plan.Connection = connection(c.to)
			s.write(rollout.VersionWrite{Op: rollout.ReconnectVersion, Replicas: replicas(3), Guard: v1alpha1.GuardOn})
			show(c.step, manifestOnly(s.commit()))
		}
	},
	"shortened name": func(t *testing.T, show show) {
		s := newScene(t, with(checkoutSpec, "name: checkout\n", "name: checkout-of-a-shop-with-a-rather-long-name\n"), noAuth())
		show("created", s.commit())
	},
	"custom build id": func(t *testing.T, show show) {
		custom := with(checkoutSpec, "    temporalNamespace:", "    unsafeCustomBuildID: stable-1\n    temporalNamespace:")
		s := newScene(t, custom, noAuth())
		show("created", s.commit())
		s.ask(with(custom, "checkout:v2.3.0", "checkout:v2.4.0"))
		show("updated", s.commit())
	},
	"second version and removal": func(t *testing.T, show show) {
		s := newScene(t, checkoutSpec, noAuth())
		first := s.target()
		s.commit()
		s.ask(with(checkoutSpec, "checkout:v2.3.0", "checkout:v2.4.0"))
		show("second", s.commit())
		s.write(rollout.VersionWrite{BuildID: first, Op: rollout.EditVersion, Replicas: replicas(0), Guard: v1alpha1.GuardOff})
		show("retired", s.commit())
		s.plan.Record.Versions = s.plan.Record.Versions[1:]
		s.write(rollout.VersionWrite{BuildID: first, Op: rollout.RemoveVersion})
		show("removed", s.commit())
	},
	"pools": func(t *testing.T, show show) {
		pooled := checkoutSpec + `  pools:
  - name: activities
    replicas: 4
    template:
      metadata: {labels: {app: checkout-activities}}
      spec: {containers: [{name: worker, image: "registry.example.com/payments/activities:v7"}]}
`
		s := newScene(t, pooled, mutualTLS("client"))
		show("created", s.commit())
		none := s.plan.Record.Versions[0].Pools
		none[0].Replicas = replicas(0)
		s.write(rollout.VersionWrite{Op: rollout.EditVersion, Replicas: replicas(0), Guard: v1alpha1.GuardOff, Pools: none})
		show("retired", manifestOnly(s.commit()))
		s.plan.Connection = connection(apiKey("cloud", "key"))
		s.write(rollout.VersionWrite{Op: rollout.ReconnectVersion, Replicas: replicas(0), Guard: v1alpha1.GuardOff, Pools: none})
		show("reconnected", manifestOnly(s.commit()))
		s.ask(checkoutSpec)
		s.plan.Record.Versions = s.plan.Record.Versions[1:]
		s.plan.Versions = append(s.plan.Versions, rollout.VersionWrite{BuildID: s.record.Routing.Spec.Versions[0].BuildID, Op: rollout.RemoveVersion})
		show("removed, and a version without pools", s.commit())
	},
	"restored": func(t *testing.T, show show) {
		s := newScene(t, checkoutSpec, noAuth())
		s.commit()
		file := layout.VersionFile(s.target(), layout.Deployment)
		lost := s.record.Files[file].Hash
		delete(s.record.Files, file)
		show("lost", s.commit())
		s.write(rollout.VersionWrite{Op: rollout.RestoreFiles, Blobs: map[string]string{layout.Deployment: lost}})
		show("restored", s.commit())
	},
	"resources": playResources,
	"status off": func(t *testing.T, show show) {
		s := newScene(t, checkoutSpec, noAuth())
		s.plan.Environment.Status = v1alpha1.StatusOff
		changes := s.commit()
		show("created", changes[:1])
	},
	"status": func(t *testing.T, show show) {
		spec := with(checkoutSpec, "  labels: {team: payments}\n", `  labels: {team: payments}
  annotations: {argocd.argoproj.io/sync-options: Replace=true, owner: "on"}
`)
		s := newScene(t, spec, noAuth())
		s.plan.Environment.CD.Tool = v1alpha1.ArgoCD
		show("created", s.commit()[2:3])
		s.plan.Status = statusOf(s.plan.Spec, "WaitingForPollers", v1alpha1.False, 1)
		show("same-transition", s.commit())
		s.plan.Status = statusOf(s.plan.Spec, "Ramping", v1alpha1.False, 2)
		show("another-reason", s.commit())
		s.plan.Status = statusOf(s.plan.Spec, "RolloutComplete", v1alpha1.True, 3)
		show("ready", s.commit())
		s.plan.Spec = nil
		s.plan.Status.Conditions = statetable.Row{Reason: rollout.InvalidSpec, Stalled: true}.Status(at(4)).Conditions
		show("spec-gone", s.commit())
	},
	"empty": func(t *testing.T, show show) {
		s := newScene(t, checkoutSpec, noAuth())
		s.plan.Record.Versions, s.plan.Versions, s.plan.Status = nil, nil, nil
		show("nothing", s.commit())
		root, err := Root(v1alpha1.Environment{Output: v1alpha1.Output{Path: "deploy/prod"}}, nil)
		require.NoError(t, err)
		show("root", []rollout.FileChange{root})
		root, err = Root(v1alpha1.Environment{Output: v1alpha1.Output{Path: "."}}, []string{"shop/web", "payments/checkout", "shop/web"})
		require.NoError(t, err)
		show("root-of-two", []rollout.FileChange{root})
	},
}
