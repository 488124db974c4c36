package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// stint is a time for which a version was current. buildID "" stands for unversioned workers, or none.
type stint struct {
	buildID string
	since   time.Time
}

// seenPromotions is the promotion order with what became current since it was written. A promotion counts when it is
// seen, and it does not matter who made it.
func (v *View) seenPromotions() []v1alpha1.Promotion {
	order := slices.Clone(v.rec.Promotions)
	if !v.readable() || v.lost() != "" {
		return order
	}
	for _, s := range v.stints() {
		order = v.follow(order, s)
	}
	return order
}

// stints are what became current since the basis of the last decision, the oldest first, and what is current now.
// Temporal keeps the last time of each version only. All times that are compared are the server's. While a change is
// under way, a version says that it became current before the routing does: it is not yet.
func (v *View) stints() []stint {
	var out []stint
	for _, o := range v.obs.Versions {
		between := v.rec.Basis != nil && o.BecameCurrentAt.After(v.rec.Basis.CurrentChangedAt.Time) &&
			o.BecameCurrentAt.Before(v.actual.CurrentChangedAt)
		if between && o.BuildID != v.actual.Current && !v.inOrder(o.BuildID, o.BecameCurrentAt) {
			out = append(out, stint{o.BuildID, o.BecameCurrentAt})
		}
	}
	slices.SortFunc(out, func(a, b stint) int {
		return cmp.Or(a.since.Compare(b.since), strings.Compare(a.buildID, b.buildID))
	})
	since := v.actual.CurrentChangedAt
	if since.IsZero() {
		since = v.now
	}
	return append(out, stint{v.actual.Current, since})
}

// inOrder reports whether the recorded promotion order has the time at which a version became current, or a later one.
func (v *View) inOrder(buildID string, since time.Time) bool {
	return slices.ContainsFunc(v.rec.Promotions, func(p v1alpha1.Promotion) bool {
		return p.BuildID == buildID && (p.LeftAt.IsZero() || !p.LeftAt.Before(since))
	})
}

// follow adds a version to a promotion order, unless it is the last one there already.
func (v *View) follow(order []v1alpha1.Promotion, next stint) []v1alpha1.Promotion {
	if n := len(order); n > 0 && order[n-1].LeftAt.IsZero() {
		last := &order[n-1]
		if last.BuildID == next.buildID {
			return order
		}
		last.LeftBy = v.leftBy(order, next.buildID)
		last.LeftAt = v1alpha1.NewTime(next.since)
	}
	if next.buildID != "" {
		order = append(order, v1alpha1.Promotion{BuildID: next.buildID, At: v1alpha1.NewTime(next.since)})
	}
	return order
}

// leftBy says how the last version of an order gave way to another. Going back to one that stood before it is a
// rollback. Anything else is a promotion, and so is what the bot decided on when the last one was current.
func (v *View) leftBy(order []v1alpha1.Promotion, to string) v1alpha1.LeftBy {
	last := order[len(order)-1].BuildID
	decided := v.rec.Basis != nil && v.rec.Basis.Current == last && v.decided() == to
	switch {
	case decided:
		return v1alpha1.LeftByPromotion
	case to == "":
		return v1alpha1.LeftByOutside
	case slices.Contains(before(order), to):
		return v1alpha1.LeftByRollback
	}
	return v1alpha1.LeftByPromotion
}

// decided is the version that the bot decided to be current, whatever a person made of that since.
func (v *View) decided() string {
	if d := v.rec.Decided; d != nil {
		return d.Current
	}
	return v.desired.Current
}

// before lists the versions that stood before the last one of a promotion order, the oldest first. Each gave way to a
// promotion, and traffic did not go back past it since.
func before(order []v1alpha1.Promotion) []string {
	var out []string
	for i, p := range order {
		if i > 0 && order[i-1].LeftBy == v1alpha1.LeftByRollback {
			out = cutAt(out, p.BuildID)
		}
		if p.LeftBy == v1alpha1.LeftByPromotion && i < len(order)-1 {
			out = append(out, p.BuildID)
		}
	}
	return out
}

// cutAt drops the last occurrence of a version from a list, and what follows it.
func cutAt(list []string, id string) []string {
	for i, other := range slices.Backward(list) {
		if other == id {
			return list[:i]
		}
	}
	return list
}

// stoodBefore reports whether a version was current before another one was, and gave way to a promotion.
func (v *View) stoodBefore(id, other string) bool {
	at := lastPromotion(v.promotions, other)
	return at >= 0 && slices.Contains(before(v.promotions[:at+1]), id)
}

func lastPromotion(order []v1alpha1.Promotion, id string) int {
	for i, p := range slices.Backward(order) {
		if p.BuildID == id {
			return i
		}
	}
	return -1
}

// seenCurrent is the version that Git saw current last, "" for none.
func (v *View) seenCurrent() string {
	if n := len(v.rec.Promotions); n > 0 && v.rec.Promotions[n-1].LeftAt.IsZero() {
		return v.rec.Promotions[n-1].BuildID
	}
	return ""
}

// handRollback is the version from which somebody took all traffic back to an earlier one since the record was written,
// "" for none. A retreat that the bot made itself does not count.
func (v *View) handRollback() string {
	n := len(v.promotions)
	if n < 2 || n <= len(v.rec.Promotions) || v.promotions[n-1].BuildID != v.actual.Current ||
		v.promotions[n-2].LeftBy != v1alpha1.LeftByRollback || v.rec.Basis == nil || v.edit == editOpen ||
		v.takenBack() {
		return ""
	}
	return v.promotions[n-2].BuildID
}
