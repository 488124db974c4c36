package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

const tenancyExample = "../../examples/tenancy"

// tenant is a copy of examples/tenancy, as the processes of its teams see it.
type tenant struct {
	t   *testing.T
	dir string
}

func newTenant(t *testing.T) tenant {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(tenancyExample)))
	return tenant{t, dir}
}

func (x tenant) write(name, text string) {
	x.t.Helper()
	file := filepath.Join(x.dir, name)
	require.NoError(x.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(x.t, os.WriteFile(file, []byte(text), 0o644))
}

func (x tenant) read(name string) string {
	x.t.Helper()
	text, err := os.ReadFile(filepath.Join(x.dir, name))
	require.NoError(x.t, err)
	return string(text)
}

// as is what a command prints, and says, with the configuration of a team's process.
func (x tenant) as(team, command string) (printed, said string, ok bool) {
	x.t.Helper()
	config, err := filepath.Abs(filepath.Join(tenancyExample, "bots", team+".yaml"))
	require.NoError(x.t, err)
	cmd := exec.CommandContext(x.t.Context(), "rampart", command, "--config", config)
	cmd.Dir = x.dir
	cmd.Env = append(gittest.Env(), "PATH="+os.Getenv("PATH"), "HOME="+x.dir)
	var out, log strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &log
	err = cmd.Run()
	return out.String(), log.String(), err == nil
}

// renders is what the process of a team would write.
func (x tenant) renders(team string) string {
	x.t.Helper()
	printed, said, ok := x.as(team, "render")
	require.True(x.t, ok, said)
	return printed
}

// TestTenancyAttacks: what one team can write into the repository changes nothing for another, and is refused, or does
// nothing, for itself. The first rows are changes of the team's own folder, which no other team reviews; those of
// rampart.yaml are what holds though a reviewer of the platform team overlooks them.
func TestTenancyAttacks(t *testing.T) {
	testneed.Plain(t)
	const (
		spec    = "teams/shipping/labels.yaml"
		another = "teams/shipping/another.yaml"
	)
	edit := func(file, from, to string) func(tenant) {
		return func(x tenant) {
			was := x.read(file)
			require.Contains(x.t, was, from)
			x.write(file, strings.ReplaceAll(was, from, to))
		}
	}
	add := func(file, text string) func(tenant) { return func(x tenant) { x.write(file, text) } }
	copied := func(from, change, to string) func(tenant) {
		return func(x tenant) { x.write(another, strings.ReplaceAll(x.read(from), change, to)) }
	}
	resource := func(kind, namespace string) func(tenant) {
		return add(another, "apiVersion: temporal.io/v1alpha1\nkind: WorkerResourceTemplate\nmetadata: {name: more, namespace: "+namespace+"}\n"+
			"spec:\n  temporalWorkerDeploymentRef: {name: labels}\n  template: "+kind+"\n")
	}
	pod := func(settings string) func(tenant) {
		return edit(spec, `v1.0.0"}`, `v1.0.0", `+settings+`}`)
	}
	for name, c := range map[string]struct {
		attack func(tenant)
		// refused is what the attacker's own process says; "": nothing comes of it.
		refused string
	}{
		"a spec in another team's namespace":           {edit(spec, "namespace: shipping}", "namespace: payments}"), "does not let environment shipping name the namespace \"payments\""},
		"another team's spec, as it is":                {copied("teams/payments/checkout.yaml", "", ""), "does not let environment shipping name the namespace \"payments\""},
		"another team's connection, leading elsewhere": {copied("teams/payments/connection.yaml", "temporal-frontend.temporal", "evil.example.com"), "does not let a connection of environment shipping lead to"},
		"another team's Temporal namespace":            {edit(spec, "temporalNamespace: shipping", "temporalNamespace: payments"), `name the Temporal namespace "payments"`},
		"another server":                               {edit("teams/shipping/connection.yaml", "temporal-frontend.temporal", "evil.example.com"), "evil.example.com"},
		"an object for another team's namespace":       {resource("{apiVersion: v1, kind: ConfigMap}", "payments"), "payments"},
		"an object that gives rights in the cluster":   {resource("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding}", "shipping"), "ClusterRoleBinding"},
		"a privileged pod":                             {pod("securityContext: {privileged: true}"), "privileged"},
		"more capabilities":                            {pod("securityContext: {capabilities: {add: [SYS_ADMIN]}}"), "SYS_ADMIN"},
		"a path of the host":                           {edit(spec, "      containers:\n", "      volumes: [{name: host, hostPath: {path: /}}]\n      containers:\n"), "host"},
		"the network of the host":                      {edit(spec, "      containers:\n", "      hostNetwork: true\n      containers:\n"), "host"},
		"a waiver of the platform's rule": {func(x tenant) {
			pod("securityContext: {privileged: true}")(x)
			x.write(another, "apiVersion: rampart.dev/v1alpha1\nkind: Waiver\nmetadata: {name: mine}\nspec:\n  rule: spec.pods\n  scope: {environment: shipping}\n"+
				"  reason: because\n  approver: me\n  expiresAt: \"2099-01-01T00:00:00Z\"\n")
		}, "privileged"},
		"a policy that allows everything": {add("teams/shipping/policies/mine.rego", "package rampart.rollout\n\nallow if true\n"), ""},
		"a configuration in the folder":   {add("teams/shipping/rampart.yaml", "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec:\n  environments:\n    - {name: payments, specs: [\"teams/shipping/**\"], output: {path: mine}}\n"), ""},
		"data that loosens the rules":     {add("teams/shipping/data.yaml", "rampart: {config: {spec: {pods: {privileged: allow}}}}\n"), ""},
		"a file that cannot be read":      {add(another, "apiVersion: temporal.io/v1alpha1\nkind: TemporalWorkerDeployment\nmetadata: {"), "another.yaml"},
		"a link to another team's file": {func(x tenant) {
			require.NoError(x.t, os.Symlink("../payments/checkout.yaml", filepath.Join(x.dir, another)))
		}, ""},
		"a record of another team's version": {add("teams/shipping/routing.yaml", "apiVersion: rampart.dev/v1alpha1\nkind: Routing\nmetadata: {name: checkout, namespace: payments}\nspec:\n"+
			"  workerDeployment: payments/checkout\n  temporalNamespace: payments\n  specPath: teams/payments/checkout.yaml\n  desired: {current: evil}\n  versions: []\n"), ""},

		"rampart.yaml: no approval": {edit("rampart.yaml", "approval: {mode: PullRequest}", "approval: {mode: Direct}"), "tightened from Direct"},
		"rampart.yaml: another team's namespace": {func(x tenant) {
			edit("rampart.yaml", `specs: ["teams/shipping/**"]`, `specs: ["teams/shipping/**", "more/**"]`)(x)
			x.write("more/spec.yaml", strings.ReplaceAll(x.read("teams/payments/checkout.yaml"), "name: checkout", "name: more"))
		}, "does not let environment shipping name the namespace \"payments\""},
		"rampart.yaml: the rules are gone": {edit("rampart.yaml", "      data: [\"platform/data.yaml\"]\n", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTenant(t)
			before, mine := x.renders("payments"), x.renders("shipping")
			c.attack(x)
			printed, said, ok := x.as("shipping", "validate")
			said += printed
			if c.refused == "" {
				require.True(t, ok, said)
				require.Equal(t, mine, x.renders("shipping"), "nothing comes of it")
			}
			require.Contains(t, said, c.refused)
			printed, said, ok = x.as("payments", "validate")
			require.True(t, ok, "the other team: %s%s", printed, said)
			require.Contains(t, said, "worker deployments: 1, errors: 0, refused by policy: 0")
			require.Equal(t, before, x.renders("payments"), "nothing changes for the other team")
		})
	}
}
