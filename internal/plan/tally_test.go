package plan

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// tally counts what random worlds came by.
type tally struct {
	mu      sync.Mutex
	lengths []int          // in events, one a world
	rows    map[string]int // plans that a row of the target decided; in one of eight plans also rows of other versions
	deaths  map[death]int
}

// death is a place where the bot died with an action in its plan.
type death struct {
	site site
	kind rollout.ActionKind
}

func newTally() *tally { return &tally{rows: map[string]int{}, deaths: map[death]int{}} }

func (c *tally) others(s rollout.Snapshot, p rollout.Plan) {
	v := Look(s)
	if s.Record.RoutingProblem != nil || !v.readable() {
		return
	}
	for i := range v.rec.Versions {
		if r := &v.rec.Versions[i]; v.target == nil || r.BuildID != v.target.BuildID {
			row, _ := v.otherRow(r)
			c.rows[otherName(row)]++
		}
	}
}

func (c *tally) died(at site, p rollout.Plan) {
	kinds := map[rollout.ActionKind]bool{}
	for _, a := range p.Actions {
		kinds[a.Kind] = true
	}
	for k := range kinds {
		c.deaths[death{at, k}]++
	}
}

func (c *tally) add(o *tally) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lengths = append(c.lengths, o.lengths...)
	for k, n := range o.rows {
		c.rows[k] += n
	}
	for k, n := range o.deaths {
		c.deaths[k] += n
	}
}

// kinds are all kinds of actions but Continue, which does nothing.
var kinds = []rollout.ActionKind{
	rollout.CreateVersion, rollout.UpdateVersion, rollout.ScaleVersion, rollout.Restore, rollout.UpdateResources, rollout.StartGate, rollout.Ramp,
	rollout.Promote, rollout.ResetRamp, rollout.Rollback, rollout.DriftAction, rollout.ScaleDown, rollout.DeleteVersion,
	rollout.RemoveFiles, rollout.SetAsideKind, rollout.Unroute, rollout.SignalWorkflows, rollout.MoveWorkflows, rollout.CancelWorkflows,
	rollout.TerminateWorkflows,
}

// What a run of many worlds has to come by.
const (
	manyWorlds   = 2_000
	middleEvents = 150 // of the world in the middle
	perRow       = 10
	perDeath     = 1
)

// check requires of a long run that every row decided often, and that the bot died everywhere with every action.
func (c *tally) check(t *testing.T) {
	slices.Sort(c.lengths)
	worlds, middle, total := len(c.lengths), 0, 0
	for i, n := range c.lengths {
		if total += n; i == worlds/2 {
			middle = n
		}
	}
	t.Logf("%d worlds, of %d events in the middle, %d in all", worlds, middle, total)
	if worlds < manyWorlds {
		return
	}
	require.GreaterOrEqual(t, middle, middleEvents, "events of the world in the middle")
	for _, row := range c.all() {
		t.Logf("row %s: %d", row, c.rows[row])
		require.GreaterOrEqual(t, c.rows[row], perRow, "row %s", row)
	}
	for _, at := range sites() {
		for _, kind := range kinds {
			if kind == rollout.SetAsideKind && slices.Index(sites(), at) < slices.Index(sites(), afterDelete) {
				continue // it follows from a deletion that was refused
			}
			n := c.deaths[death{at, kind}]
			t.Logf("died %s with %s: %d", at, kind, n)
			require.GreaterOrEqual(t, n, perDeath, "died %s with %s", at, kind)
		}
	}
}

// all are the names of all rows.
func (c *tally) all() []string {
	var out []string
	for _, r := range targetRows() {
		out = append(out, r.name)
	}
	for _, r := range otherRows() {
		out = append(out, otherName(r.name))
	}
	return out
}

func otherName(row string) string { return "other versions: " + row }
