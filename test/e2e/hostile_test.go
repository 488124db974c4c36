package e2e

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// twoEnvironments have specs, output and policies of their own.
const twoEnvironments = `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: a, specs: ["a/**"], output: {path: deploy/a}, policies: ["policies/a/*.rego"]}
    - {name: b, specs: ["b/**"], output: {path: deploy/b}, policies: ["policies/b/*.rego"]}
`

// bothOutputs is what the cluster applies.
const bothOutputs = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [a, b]
`

// harmless is in force in both environments before somebody pushes another one.
const harmless = "package rampart.rollout\n\nwarn contains {\"rule\": \"test.seen\", \"msg\": \"a raise\"} if input.action.kind == \"Ramp\"\n"

// Policies that go beyond what a policy may use.
const (
	// looping goes through ten thousand million pairs.
	looping = `package rampart.rollout

deny contains {"rule": "test.loop", "msg": "never"} if {
	some i in numbers.range(1, 100000)
	some j in numbers.range(1, 100000)
	i * j == -1
}
`
	// comparing is one expression that would take for ever, or all stack that there is. It compares two values of
	// 2^60 leaves; each of the two is sixty arrays in memory.
	comparing = `package rampart.rollout

deny contains {"rule": "test.compare", "msg": "never"} if shared(input.action.to) == alike(input.action.to)

twice(x) := [x | some _ in [1, 2]]

five(x) := twice(twice(twice(twice(twice(x)))))

twenty(x) := five(five(five(five(x))))

shared(x) := twenty(twenty(twenty(x)))

again(x) := [x | some _ in [1, 2]]

again5(x) := again(again(again(again(again(x)))))

again20(x) := again5(again5(again5(again5(x))))

alike(x) := again20(again20(again20(x)))
`
)

// Nothing moves on by itself until the pauses are short.
const shortSteps = "{strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 1s}, {rampPercentage: 50, pauseDuration: 1s}]%s}"

// neighbors are two worker deployments in two environments of one repository.
type neighbors struct {
	a, b *world
	// log of the last cycle.
	log string
}

func newNeighbors(t *testing.T) *neighbors {
	w := newWorld(t, withImages(map[string]temporalenv.Image{"cart:v1": temporalenv.DefaultImage("cart"), "cart:v2": temporalenv.DefaultImage("cart")}))
	n := &neighbors{a: w.named(deployName), b: w.named("cart")}
	n.a.output, n.b.output = output+"/a", output+"/b"
	n.push("two environments", map[string]string{"rampart.yaml": twoEnvironments, output + "/kustomization.yaml": bothOutputs,
		"a/connection.yaml": w.connection(), "b/connection.yaml": w.connection(),
		"policies/a/rollout.rego": harmless, "policies/b/rollout.rego": harmless})
	return n
}

// push commits files, whose texts may name the Temporal namespace.
func (n *neighbors) push(message string, files map[string]string) {
	n.a.t.Helper()
	for path, text := range files {
		files[path] = strings.ReplaceAll(text, "NAMESPACE", n.a.ns.Name())
	}
	n.a.clock++
	n.a.commit(gittest.Commit{Write: files, Message: message})
}

// specs are the specs of images in both environments.
func (n *neighbors) specs(a, b, strategy string) map[string]string {
	const kept = "scaledownDelay: 1h, deleteDelay: 1h"
	return map[string]string{
		"a/checkout.yaml": specText{name: n.a.name, image: a, strategy: strategy, sunset: kept}.String(),
		"b/cart.yaml":     specText{name: n.b.name, image: b, strategy: strategy, sunset: kept}.String()}
}

// cycles runs the bot, each cycle in a process of its own, until a condition holds.
func (n *neighbors) cycles(what string, ok func() bool) {
	n.a.t.Helper()
	n.a.eventually(what, func() bool { n.log = n.a.once(); return ok() })
}

// ramp brings v2 to 10% beside v1 in both, where they stay.
func (n *neighbors) ramp() {
	n.a.t.Helper()
	n.push("v1", n.specs("app:v1", "cart:v1", slowSteps))
	n.cycles("v1 is current in both", func() bool { return n.a.reason() == "RolloutComplete" && n.b.reason() == "RolloutComplete" })
	n.push("v2", n.specs("app:v2", "cart:v2", slowSteps))
	n.cycles("v2 ramps in both", func() bool { return n.a.reason() == "Ramping" && n.b.reason() == "Ramping" })
	require.Equal(n.a.t, []string{"current v1", "ramp v2 10"}, n.a.calls())
	require.Equal(n.a.t, []string{"current v1", "ramp v2 10"}, n.b.calls())
}

// Somebody pushes policies that never end to one environment in mid-ramp. Its raise is held, and says why; the other
// environment's rollout goes on in the same cycles. What takes traffic back asks no policy, and with the policies
// mended the rollout goes on.
func TestHostilePolicyHoldsOnlyItsEnvironment(t *testing.T) {
	n := newNeighbors(t)
	n.ramp()
	held, raised := []string{"current v1", "ramp v2 10"}, []string{"current v1", "ramp v2 10", "ramp v2 50"}

	n.push("a policy that loops", map[string]string{"policies/a/rollout.rego": looping})
	n.push("shorter pauses", n.specs("app:v2", "cart:v2", shortSteps))
	n.cycles("b goes on, a is held", func() bool { return len(n.b.calls()) > 2 && n.a.reason() == "PolicyHold" })
	require.Equal(t, raised, n.b.calls()[:3])
	// The machine's speed decides which of its bounds it reaches first.
	require.Regexp(t, `^the policies of rampart\.rollout (took more than 200000 steps|took longer than 1s) \(policies/a/rollout\.rego:3\)$`, n.a.message())

	n.push("a policy that cannot be stopped", map[string]string{"policies/a/rollout.rego": comparing})
	// The status in Git keeps the first message while the reason stays; what the bot logs is of the moment.
	compared := regexp.MustCompile(`deployment=shop/checkout reason=PolicyHold message="(evaluating the policies needed more than 384 MiB of memory, most likely: their process ended \(.*|the policies of rampart\.rollout took longer than 1s and could not be stopped) \(policies/a/rollout\.rego(:3)?\)"`)
	n.cycles("b is done, a is held", func() bool { return n.b.reason() == "RolloutComplete" && compared.MatchString(n.log) })
	require.Equal(t, append(raised, "current v2"), n.b.calls())
	require.Equal(t, "PolicyHold", n.a.reason())
	require.Equal(t, held, n.a.calls(), "nothing was raised meanwhile")
	require.NotContains(t, n.b.file(n.b.dir()+"/status.yaml"), "the policies of")

	n.push("both", map[string]string{"policies/a/loop.rego": looping})
	n.push("back to v1", n.specs("app:v1", "cart:v2", shortSteps))
	n.a.once()
	require.Equal(t, append(held, "ramp none"), n.a.calls(), "one cycle takes the traffic back, whatever the policies")
	require.Empty(t, n.a.routing().Bars, "a revert bars nothing")
	require.Nil(t, n.a.routing().Desired.Ramping)

	n.push("mended", map[string]string{"policies/a/loop.rego": harmless, "policies/a/rollout.rego": harmless})
	n.push("v2 again", n.specs("app:v2", "cart:v2", shortSteps))
	n.cycles("a is done", func() bool { return n.a.reason() == "RolloutComplete" && len(n.a.calls()) > 3 })
	require.Equal(t, append(held, "ramp none", "ramp v2 10", "ramp v2 50", "current v2"), n.a.calls())
	require.Equal(t, append(raised, "current v2"), n.b.calls(), "nothing more happened to b")
	n.a.repo.Fsck()
}
