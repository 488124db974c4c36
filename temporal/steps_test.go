package temporal

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func current(build string) rollout.RoutingStep {
	return rollout.RoutingStep{Kind: rollout.SetCurrent, BuildID: build}
}

func ramp(build string, percentage float32) rollout.RoutingStep {
	return rollout.RoutingStep{Kind: rollout.SetRamp, BuildID: build, Percentage: percentage}
}

var clearRamp = rollout.RoutingStep{Kind: rollout.ClearRamp}

func ramping(currentBuild, build string, percentage float32) rollout.RoutingConfig {
	return rollout.RoutingConfig{Current: currentBuild, HasRamp: true, Ramping: build, Percentage: percentage}
}

func only(build string) rollout.RoutingConfig { return rollout.RoutingConfig{Current: build} }

func TestStepsChangeRouting(t *testing.T) {
	for name, c := range map[string]struct {
		from rollout.RoutingConfig
		step rollout.RoutingStep
		want rollout.RoutingConfig
	}{
		"first ramp":                   {only("v1"), ramp("v2", 10), ramping("v1", "v2", 10)},
		"ramp at 0%":                   {only("v1"), ramp("v2", 0), ramping("v1", "v2", 0)},
		"ramp to unversioned":          {only("v1"), ramp("", 10), ramping("v1", "", 10)},
		"unversioned at 0% is no ramp": {ramping("v1", "v2", 10), ramp("", 0), only("v1")},
		"promotion ends the ramp":      {ramping("v1", "v2", 10), current("v2"), only("v2")},
		"a third ramp stays":           {ramping("v1", "v2", 10), current("v3"), ramping("v3", "v2", 10)},
		"clear":                        {ramping("v1", "v2", 10), clearRamp, only("v1")},
	} {
		t.Run(name, func(t *testing.T) { require.Empty(t, cmp.Diff(c.want, c.from.After(c.step))) })
	}
}

func TestWithResets(t *testing.T) {
	for name, c := range map[string]struct {
		from  rollout.RoutingConfig
		steps []rollout.RoutingStep
		want  []rollout.RoutingStep
	}{
		"promotion of what ramps": {ramping("v1", "v2", 50), []rollout.RoutingStep{current("v2")}, []rollout.RoutingStep{current("v2")}},
		"no ramp":                 {only("v1"), []rollout.RoutingStep{current("v2")}, []rollout.RoutingStep{current("v2")}},
		"a third ramp":            {ramping("v1", "v3", 5), []rollout.RoutingStep{current("v2")}, []rollout.RoutingStep{clearRamp, current("v2")}},
		"unversioned ramp":        {ramping("v1", "", 5), []rollout.RoutingStep{current("v2")}, []rollout.RoutingStep{clearRamp, current("v2")}},
		"reset already planned":   {ramping("v1", "v3", 5), []rollout.RoutingStep{clearRamp, current("v2")}, []rollout.RoutingStep{clearRamp, current("v2")}},
		"another ramp replaces":   {ramping("v1", "v3", 5), []rollout.RoutingStep{ramp("v2", 5)}, []rollout.RoutingStep{ramp("v2", 5)}},
	} {
		t.Run(name, func(t *testing.T) { require.Empty(t, cmp.Diff(c.want, withResets(c.steps, c.from))) })
	}
}

func TestLoweringFitsTheActualRouting(t *testing.T) {
	reset := rollout.RoutingCall{Basis: ramping("v1", "v2", 10), Steps: []rollout.RoutingStep{clearRamp}}
	rollback := rollout.RoutingCall{Basis: only("v2"), Steps: []rollout.RoutingStep{current("v1")}}
	cut := rollout.RoutingCall{Basis: ramping("v1", "v2", 50), Steps: []rollout.RoutingStep{ramp("v2", 10)}}
	for name, c := range map[string]struct {
		call   rollout.RoutingCall
		actual rollout.RoutingConfig
		want   []rollout.RoutingStep
		stale  bool
	}{
		"reset as decided":                            {reset, ramping("v1", "v2", 10), []rollout.RoutingStep{clearRamp}, false},
		"reset, ramped further meanwhile":             {reset, ramping("v1", "v2", 80), []rollout.RoutingStep{clearRamp}, false},
		"reset, other current meanwhile":              {reset, ramping("v0", "v2", 10), []rollout.RoutingStep{clearRamp}, false},
		"reset, gone already":                         {reset, only("v1"), nil, false},
		"reset, another ramps now":                    {reset, ramping("v1", "v3", 10), nil, true},
		"reset, unversioned workers ramp now":         {reset, ramping("v1", "", 10), nil, true},
		"rollback as decided":                         {rollback, only("v2"), []rollout.RoutingStep{current("v1")}, false},
		"rollback done by someone":                    {rollback, only("v1"), nil, false},
		"rollback, a third is current":                {rollback, only("v3"), nil, true},
		"rollback, the one before ramps":              {rollback, ramping("v2", "v1", 5), []rollout.RoutingStep{current("v1")}, false},
		"rollback, a third ramps meanwhile":           {rollback, ramping("v2", "v3", 5), nil, true},
		"rollback with a ramp that was there already": {rollout.RoutingCall{Basis: ramping("v2", "v3", 5), Steps: []rollout.RoutingStep{current("v1")}}, ramping("v2", "v3", 7), []rollout.RoutingStep{clearRamp, current("v1")}, false},
		"cut as decided":                              {cut, ramping("v1", "v2", 50), []rollout.RoutingStep{ramp("v2", 10)}, false},
		"cut, already lower":                          {cut, ramping("v1", "v2", 5), nil, true},
		"cut, no ramp any more":                       {cut, only("v1"), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := lowering(c.call, c.actual)
			var stale *StaleError
			require.Equal(t, c.stale, errors.As(err, &stale), "%v", err)
			require.Empty(t, cmp.Diff(c.want, got))
			if c.stale {
				require.Empty(t, cmp.Diff(StaleError{Basis: c.call.Basis, Actual: c.actual}, *stale))
			}
		})
	}
}

// Whatever the routing became meanwhile, two things hold. The build that a reset or a rollback was decided against
// never gets more, and no build gets anything but the one that the call, or the routing as it is, gives the rest to.
func TestLoweringNeverRaises(t *testing.T) {
	builds := rapid.SampledFrom([]string{"", "v1", "v2", "v3"})
	routings := rapid.Custom(func(t *rapid.T) rollout.RoutingConfig {
		r := only(builds.Draw(t, "current"))
		if rapid.Bool().Draw(t, "ramps") {
			to := builds.Filter(func(b string) bool { return b != r.Current }).Draw(t, "ramping")
			share := rapid.Float32Range(0.5, 100).Draw(t, "percentage")
			r = ramping(r.Current, to, share)
		}
		return r
	})
	rapid.Check(t, func(t *rapid.T) {
		basis, actual := routings.Draw(t, "basis"), routings.Draw(t, "actual")
		call := rollout.RoutingCall{Basis: basis}
		var against, back string
		if basis.HasRamp && rapid.Bool().Draw(t, "reset") {
			against, back = basis.Ramping, actual.Current
			call.Steps = []rollout.RoutingStep{clearRamp}
		} else {
			back = builds.Filter(func(b string) bool { return b != against }).Draw(t, "back")
			call.Steps = []rollout.RoutingStep{current(back)}
		}
		steps, err := lowering(call, actual)
		if err != nil {
			return
		}
		end := actual
		for _, step := range steps {
			end = end.After(step)
		}
		if len(steps) > 0 {
			require.Zero(t, end.Share(against), "%v", end)
		}
		for _, build := range []string{"", "v1", "v2", "v3"} {
			if build != back {
				require.LessOrEqual(t, end.Share(build), actual.Share(build), "%q in %v", build, end)
			}
		}
	})
}

func TestCheckRefusesIncompleteCalls(t *testing.T) {
	good := rollout.RoutingCall{Identity: "me", Claim: rollout.ClaimHeld, Steps: []rollout.RoutingStep{ramp("v2", 10)}}
	require.NoError(t, check(good))
	nan := float32(0)
	nan /= nan
	for name, change := range map[string]func(*rollout.RoutingCall){
		"no identity": func(c *rollout.RoutingCall) { c.Identity = "" },
		"no claim":    func(c *rollout.RoutingCall) { c.Claim = "" },
		"no steps":    func(c *rollout.RoutingCall) { c.Steps = nil },
		"no kind":     func(c *rollout.RoutingCall) { c.Steps = []rollout.RoutingStep{{}} },
		"too much":    func(c *rollout.RoutingCall) { c.Steps = []rollout.RoutingStep{ramp("v2", 100.5)} },
		"negative":    func(c *rollout.RoutingCall) { c.Steps = []rollout.RoutingStep{ramp("v2", -1)} },
		"no number":   func(c *rollout.RoutingCall) { c.Steps = []rollout.RoutingStep{ramp("v2", nan)} },
	} {
		bad := good
		change(&bad)
		require.Error(t, check(bad), name)
	}
}
