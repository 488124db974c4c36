package resync

import (
	"fmt"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// CacheData is what is kept on disk of settled worker deployments.
type CacheData struct{ Settled []cachedRow }

type cachedRow struct {
	Key               Key
	Inputs            []byte
	Until, Due        time.Time
	Routing           rollout.RoutingConfig
	TemporalNamespace string
}

// CacheData gives the rows, but for those to leave out. A row whose time was over long ago is of nothing that is there.
func (t *Table) CacheData(now time.Time, leaveOut func(Key) bool) CacheData {
	var out CacheData
	for key, r := range t.rows {
		if leaveOut(key) || now.After(r.Until.Add(Interval)) {
			continue
		}
		out.Settled = append(out.Settled, cachedRow{Key: key, Inputs: r.Inputs[:], Until: r.Until, Due: r.Due,
			Routing: r.Routing, TemporalNamespace: r.TemporalNamespace})
	}
	return out
}

// LoadCacheData takes the rows of an earlier run. Each worker deployment is described again when it would have been;
// those whose time came meanwhile one after the other, within the time that any may be left alone, the ones that wait
// longest first. What shows in a list, in Git or by its time is seen in the first cycle. With an error nothing is
// taken.
func (t *Table) LoadCacheData(cached CacheData, now time.Time) error {
	all := make(map[Key]*Row, len(cached.Settled))
	slices.SortFunc(cached.Settled, func(a, b cachedRow) int { return a.Until.Compare(b.Until) })
	for i, s := range cached.Settled {
		if len(s.Inputs) != len(rollout.Inputs{}) {
			return fmt.Errorf("read cached row of %s: inputs have %d bytes, want %d", s.Key.Name, len(s.Inputs),
				len(rollout.Inputs{}))
		}
		until := s.Until
		if inTurn := now.Add(Interval * time.Duration(i) / time.Duration(len(cached.Settled))); inTurn.After(until) {
			until = inTurn
		}
		if most := now.Add(Interval); until.After(most) { // the clock went back
			until = most
		}
		row := &Row{Inputs: rollout.Inputs(s.Inputs), listed: s.Key.Name.String(), Due: s.Due, Routing: s.Routing,
			TemporalNamespace: s.TemporalNamespace}
		row.restUntil(until)
		all[s.Key] = row
	}
	t.rows = all
	return nil
}
