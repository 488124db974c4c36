package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// What the in-cluster controller's tests show end to end, each under every strategy. Where a version has the traffic
// already, it got it in three ways: the bot gave it, a person moved it there in Temporal, or it was there before the
// bot, which takes it over. What comes next is the same from each.

// byStrategy is what comes under Manual, AllAtOnce and Progressive. The step at 10% is so long that a ramp stays there,
// unless a scenario is quick.
type byStrategy [3]string

func same(s string) byStrategy { return byStrategy{s, s, s} }

// What a version that nothing holds up comes to.
var (
	goesOn = byStrategy{"WaitingForPromotion", "RolloutComplete", "Ramping"}
	moves  = byStrategy{"", "current v2", "ramp v2 10"}
)

// predecessor is the version that had the traffic before the bot came, named as a version of the bot's would be.
const predecessor = "v1-00000000"

// kept is a sunset in which a version that has drained keeps its workers.
const kept = "scaledownDelay: 1h, deleteDelay: 2h"

// one is a worker deployment of a scenario.
type one struct {
	*world
	strategy int // as in byStrategy
	rollout  string
	begun    int // how many changes the bot had made at the beginning
	// took says that the predecessor has the traffic, and not v1.
	took bool
}

// v1 is the build ID of the version that has the traffic at the beginning.
func (o *one) v1() string {
	if o.took {
		return predecessor
	}
	return o.build("x:v1")
}

func (o *one) v2() string { return o.build("x:v2") }

// cast are the worker deployments of a scenario.
type cast struct {
	*world
	all []*one
}

// push pushes a spec of each worker deployment; of an image it has the tag.
func (c *cast) push(s specText) {
	c.t.Helper()
	specs := map[string]specText{}
	for _, o := range c.all {
		of := s
		of.image, of.strategy = o.name+":"+s.image, o.rollout
		specs[o.name] = of
	}
	c.pushSpecs(s.image, specs)
}

// await waits until each worker deployment has a reason.
func (c *cast) await(reasons byStrategy) {
	c.t.Helper()
	for _, o := range c.all {
		c.eventually(o.name+": "+reasons[o.strategy], func() bool { return o.reason() == reasons[o.strategy] })
	}
}

// promote rolls v2 out; where the strategy is Manual, a person makes it current.
func (c *cast) promote(sunset string) {
	c.t.Helper()
	c.push(specText{image: "v2", sunset: sunset})
	c.await(byStrategy{"WaitingForPromotion", "RolloutComplete", "RolloutComplete"})
	for _, o := range c.all {
		if o.strategy == 0 {
			o.setCurrent(o.v2())
		}
	}
	c.await(same("RolloutComplete"))
}

// scenario is played by worker deployments of each strategy; with a version that has the traffic, by one of each
// beginning.
type scenario struct {
	first bool     // no version has the traffic
	quick bool     // the step and the time in which a rollback is possible are a second
	said  bool     // a person takes traffic back
	flags []string // of the bot
	play  func(*cast)
	// ends are the reasons in the end, calls the changes that the bot made in Temporal since the beginning, gates how
	// many it started.
	ends, calls byStrategy
	gates       [3]int
	// then looks at more.
	then func(*testing.T, *one)
}

var scenarios = map[string]scenario{
	"first version": {first: true, ends: byStrategy{"WaitingForPromotion", "RolloutComplete", "RolloutComplete"}, calls: byStrategy{"", "current v1", "current v1"},
		play: func(c *cast) { c.push(specText{image: "v1"}) }},
	"first version, gate passes": {first: true, ends: byStrategy{"WaitingForPromotion", "RolloutComplete", "RolloutComplete"},
		calls: byStrategy{"", "current v1", "current v1"}, gates: [3]int{0, 1, 1},
		play: func(c *cast) { c.push(specText{image: "v1", gate: "{workflowType: Smoke}"}) }},
	"first version, gate fails": {first: true, ends: byStrategy{"WaitingForPromotion", "GateFailed", "GateFailed"}, gates: [3]int{0, 1, 1},
		play: func(c *cast) { c.push(specText{image: "v1", gate: "{workflowType: SmokeFails}"}) }},
	"first version, promoted by hand past its gate": {first: true, ends: same("RolloutComplete"), gates: [3]int{0, 1, 1},
		play: func(c *cast) {
			c.push(specText{image: "v1", gate: "{workflowType: SmokeFails}"})
			c.await(byStrategy{"WaitingForPromotion", "GateFailed", "GateFailed"})
			for _, o := range c.all {
				o.setCurrent(o.v1())
			}
		}},
	"unversioned workers": {first: true, ends: goesOn, calls: byStrategy{"", "current v1", "ramp v1 10"},
		play: func(c *cast) {
			for _, o := range c.all {
				o.unversioned(o.name)
			}
			c.push(specText{image: "v1"})
		}},

	"next version": {ends: goesOn, calls: moves,
		play: func(c *cast) { c.push(specText{image: "v2"}) }},
	"gate passes": {ends: goesOn, calls: moves, gates: [3]int{0, 1, 1},
		play: func(c *cast) { c.push(specText{image: "v2", gate: "{workflowType: Smoke}"}) }},
	"gate fails": {ends: byStrategy{"WaitingForPromotion", "GateFailed", "GateFailed"}, gates: [3]int{0, 1, 1},
		play: func(c *cast) { c.push(specText{image: "v2", gate: "{workflowType: SmokeFails}"}) }},
	"stable build ID": {ends: goesOn, calls: byStrategy{"", "current wf", "ramp wf 10, ramp none, ramp wf 10"}, // its steps start over
		play: func(c *cast) {
			c.push(specText{image: "v2", buildID: "wf"})
			c.await(goesOn)
			for _, o := range c.all { // the status is committed before traffic is raised
				c.eventually("raised, where the strategy is not Manual", func() bool { return o.strategy == 0 || len(o.calls()) > o.begun })
			}
			c.push(specText{image: "v3", buildID: "wf"})
			for _, o := range c.all {
				c.eventually("updated in place", func() bool { return strings.Contains(o.manifest("wf"), o.name+":v3") })
			}
		}},
	"no replicas, then one": {ends: goesOn, calls: moves,
		play: func(c *cast) {
			c.push(specText{image: "v2", replicas: "0"})
			c.await(same("WaitingForPollers"))
			c.push(specText{image: "v2"})
		}},
	"limit of versions": {flags: []string{"--max-versions", "2"}, ends: same("VersionLimitReached"), calls: byStrategy{"", "current v2", "ramp v2 10, ramp none"},
		play: func(c *cast) {
			c.push(specText{image: "v2", sunset: kept})
			c.await(goesOn)
			for _, o := range c.all {
				if o.strategy == 0 {
					o.setCurrent(o.v2())
				}
			}
			c.await(byStrategy{"RolloutComplete", "RolloutComplete", "Ramping"})
			c.push(specText{image: "v3", sunset: kept})
		},
		then: func(t *testing.T, o *one) { require.Empty(t, o.build("x:v3")) }},
	"another manager, who goes": {ends: goesOn, calls: moves,
		play: func(c *cast) {
			for _, o := range c.all {
				o.setManager("somebody-else")
			}
			c.push(specText{image: "v2"})
			c.await(same("OwnedByAnother"))
			c.settle()
			for _, o := range c.all {
				require.NotEmpty(c.t, o.v2(), "files are rendered all the same")
				require.Len(c.t, o.changes(), o.begun)
				o.setManager("")
			}
		},
		then: func(t *testing.T, o *one) {
			claims := o.strategy != 0 // with its next change
			require.Equal(t, claims, o.manager() == managerIdentity)
		}},
	"version before is drained": {quick: true, ends: same("RolloutComplete"), calls: byStrategy{"", "current v2", "ramp v2 10, current v2"},
		play: func(c *cast) { c.promote("") },
		then: func(t *testing.T, o *one) {
			if o.took { // its workers are not the bot's
				require.Contains(t, o.listed(), predecessor)
				return
			}
			o.eventually("removed", func() bool { return o.v1() == "" })
		}},
	"rolled back": {quick: true, said: true, ends: same("RolledBack"), calls: byStrategy{"current v1", "current v2, current v1", "ramp v2 10, current v2, current v1"},
		play: func(c *cast) {
			c.promote(kept)
			for _, o := range c.all {
				o.say("rollback", "--reason", "timeouts", "--build", o.v2())
			}
		}},

	// The other ones are people's: the in-cluster controller has no tests of them.
	"promoted by hand past its gate": {ends: byStrategy{"RolloutComplete", "GateFailed", "GateFailed"}, calls: byStrategy{"", "current v1", "current v1"}, gates: [3]int{0, 1, 1},
		play: func(c *cast) {
			c.push(specText{image: "v2", gate: "{workflowType: SmokeFails}"})
			c.await(byStrategy{"WaitingForPromotion", "GateFailed", "GateFailed"})
			for _, o := range c.all {
				o.setCurrent(o.v2())
				c.eventually("put back, where the strategy is not Manual", func() bool { return o.strategy == 0 || len(o.changes()) > o.begun })
			}
		}},
	"ramped by hand past its gate": {ends: byStrategy{"Ramping", "GateFailed", "GateFailed"}, calls: byStrategy{"", "ramp none", "ramp none"}, gates: [3]int{0, 1, 1},
		play: func(c *cast) {
			c.push(specText{image: "v2", gate: "{workflowType: SmokeFails}"})
			c.await(byStrategy{"WaitingForPromotion", "GateFailed", "GateFailed"})
			for _, o := range c.all {
				o.setRamp(o.v2(), 30)
				c.eventually("put back, where the strategy is not Manual", func() bool { return o.strategy == 0 || len(o.changes()) > o.begun })
			}
		}},
	"moved back by hand": {quick: true, ends: same("ManualHold"), calls: byStrategy{"", "current v2", "ramp v2 10, current v2"},
		play: func(c *cast) {
			c.promote(kept)
			for _, o := range c.all {
				o.setCurrent(o.v1())
			}
		},
		then: func(t *testing.T, o *one) {
			require.Equal(t, []string{"v1 Promotion", "v2 Rollback", "v1"}, o.order())
		}},
}

func TestPeer(t *testing.T) {
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			if !s.first {
				testneed.Long(t)
			}
			c := s.begin(t)
			s.play(c)
			c.await(s.ends)
			c.settle()
			c.await(s.ends)
			for _, o := range c.all {
				calls := o.calls
				if s.said { // beside the bot, which may see the mark of it before its commit
					calls = o.changes
				}
				require.Equal(t, s.calls[o.strategy], strings.Join(calls()[o.begun:], ", "), o.name)
				started := slices.DeleteFunc(c.gateStarts(), func(id string) bool { return !strings.Contains(id, ":"+o.id()+":") })
				require.Len(t, started, s.gates[o.strategy], o.name)
				if s.then != nil {
					s.then(t, o)
				}
			}
			c.repo.Fsck()
		})
	}
}

// begin starts the bot with worker deployments of each strategy, and from each beginning if a version is to have the
// traffic.
func (s scenario) begin(t *testing.T) *cast {
	t.Helper()
	beginnings := []string{"given", "byhand", "taken"}
	if s.first {
		beginnings = []string{"none"}
	}
	c, images := &cast{}, map[string]temporalenv.Image{}
	for i, strategy := range []string{"Manual", "AllAtOnce", "Progressive"} {
		long := "1h"
		if s.quick {
			long = "1s"
		}
		more := "rollback: {window: " + long + "}"
		if strategy == "Progressive" {
			more += ", steps: [{rampPercentage: 10, pauseDuration: " + long + "}]"
		}
		for _, beginning := range beginnings {
			if strategy == "Manual" && beginning == "given" {
				continue // the bot gives nothing
			}
			name := strings.ToLower(strategy) + "-" + beginning
			for v := 1; v <= 3; v++ {
				images[fmt.Sprintf("%s:v%d", name, v)] = temporalenv.DefaultImage(name)
			}
			c.all = append(c.all, &one{strategy: i, rollout: "{strategy: " + strategy + ", " + more + "%s}", took: beginning == "taken"})
			c.all[len(c.all)-1].world = &world{name: name}
		}
	}
	c.world = newWorld(t, withImages(images))
	specs := map[string]specText{}
	for _, o := range c.all {
		o.world = c.named(o.name)
		switch {
		case o.took:
			o.precede()
		case strings.HasSuffix(o.name, "given"):
			specs[o.name] = specText{image: o.name + ":v1", strategy: o.rollout}
		case strings.HasSuffix(o.name, "byhand"):
			specs[o.name] = specText{image: o.name + ":v1", strategy: manual}
		}
	}
	c.start(s.flags...)
	if s.first {
		return c
	}
	c.pushSpecs("v1", specs)
	for _, o := range c.all {
		if strings.HasSuffix(o.name, "byhand") {
			o.awaitReason("WaitingForPromotion")
			o.setCurrent(o.v1())
		}
	}
	for _, o := range c.all {
		if !o.took {
			o.awaitReady("x:v1")
		}
		o.begun = len(o.calls())
	}
	return c
}

// precede starts workers of a version that the bot does not know, and gives it the traffic.
func (o *one) precede() {
	o.t.Helper()
	w := worker.New(o.client, o.name, worker.Options{DeploymentOptions: worker.DeploymentOptions{UseVersioning: true,
		Version: worker.WorkerDeploymentVersion{DeploymentName: o.id(), BuildID: predecessor}, DefaultVersioningBehavior: workflow.VersioningBehaviorPinned}})
	temporalenv.DefaultImage(o.name).Register(w)
	require.NoError(o.t, w.Start())
	o.t.Cleanup(w.Stop)
	o.eventually("registered", func() bool {
		_, err := o.ns.Service().DescribeWorkerDeploymentVersion(o.t.Context(), &workflowservice.DescribeWorkerDeploymentVersionRequest{
			Namespace: o.ns.Name(), DeploymentVersion: versionOf(o.id(), predecessor)})
		return err == nil
	})
	o.setCurrent(predecessor)
}
