package temporal

import (
	"context"
	"time"
)

// inUseQuery selects a version's workflows that are not known to be closed, whatever their behaviour, or were started
// at or after a time.
func inUseQuery(deployment, build string, since time.Time) (string, error) {
	on, err := onVersion(deployment, build)
	return on + " AND (" + notClosed + " OR StartTime >= " + quoteTime(since) + ")", err
}

// countInUse counts what uses the listed versions that were asked for.
func (o *observer) countInUse(ctx context.Context) {
	for _, build := range o.ask.InUse {
		if v := o.obs.Version(build); v != nil {
			query, err := inUseQuery(o.deployment, build, o.ask.InUseSince)
			v.InUse = o.count(ctx, query, err)
		}
	}
}
