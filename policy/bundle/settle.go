package bundle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// set has a layer for each source, in the order of the floor; nil: the source has none.
type set []*policy.Layer

// without is the set but for some sources.
func (s set) without(sources ...int) set {
	out := slices.Clone(s)
	for _, i := range sources {
		out[i] = nil
	}
	return out
}

// over lays what a set has over another of the same sources.
func (s set) over(base set) set {
	out := slices.Clone(base)
	for i, l := range s {
		if l != nil {
			out[i] = l
		}
	}
	return out
}

// sources that the set has a layer of.
func (s set) sources() []int {
	var out []int
	for i, l := range s {
		if l != nil {
			out = append(out, i)
		}
	}
	return out
}

// problems of all layers together: they are compiled as one.
func (s set) problems(compile Compile) []parse.Problem {
	var layers []policy.Layer
	for _, i := range s.sources() {
		layers = append(layers, *s[i])
	}
	if len(layers) == 0 {
		return nil
	}
	return compile(policy.Config{Floor: layers})
}

// newcomers are layers that could come into force.
type newcomers struct {
	// fresh are the newcomers, inForce what is in force.
	fresh, inForce set
	// known are the problems of what is in force, which no newcomer has to answer for.
	known   []parse.Problem
	compile Compile
}

// settle says which newcomers come into force. These are all of them if they fit together with what they do not
// replace; else all but one; else those that are left without the ones that problems are in; and then one by one what
// fits. The others stay as they were. refused says why, by source.
func settle(fresh, inForce set, compile Compile) (accepted set, refused map[int]error) {
	if len(fresh.sources()) == 0 {
		return inForce, nil
	}
	n := newcomers{fresh, inForce, inForce.problems(compile), compile}
	now := n.together()
	for changed := true; changed; {
		changed, refused = false, nil
		for _, i := range fresh.sources() {
			if now[i] == fresh[i] {
				continue
			}
			next := slices.Clone(now)
			next[i] = fresh[i]
			if problems := n.added(next); len(problems) > 0 {
				if refused == nil {
					refused = map[int]error{}
				}
				refused[i] = n.refusal(i, problems)
				continue
			}
			now, changed = next, true
		}
	}
	return now, refused
}

// added are the problems of a set that what is in force does not have.
func (n newcomers) added(s set) []parse.Problem {
	return slices.DeleteFunc(s.problems(n.compile), func(p parse.Problem) bool { return slices.Contains(n.known, p) })
}

// together is what is in force with as many newcomers at once as can be told to fit. If not all fit, it leaves out each
// newcomer in turn: that finds one that breaks others, no matter where the problems are. Where several newcomers are
// broken, the problems name them, and it leaves out those.
func (n newcomers) together() set {
	if n.fits(n.fresh) {
		return n.fresh.over(n.inForce)
	}
	for _, i := range n.fresh.sources() {
		if left := n.fresh.without(i); n.fits(left) {
			return left.over(n.inForce)
		}
	}
	left := n.fresh
	for {
		problems := n.added(left.over(n.inForce))
		if len(problems) == 0 {
			return left.over(n.inForce)
		}
		blamed := left.namedIn(problems)
		if len(blamed) == 0 {
			return n.inForce
		}
		left = left.without(blamed...)
	}
}

func (n newcomers) fits(left set) bool { return len(n.added(left.over(n.inForce))) == 0 }

// namedIn are the sources that problems are in.
func (s set) namedIn(problems []parse.Problem) []int {
	return slices.DeleteFunc(s.sources(), func(i int) bool {
		return !slices.ContainsFunc(problems, func(p parse.Problem) bool { return isIn(p, *s[i]) })
	})
}

func isIn(p parse.Problem, l policy.Layer) bool {
	return p.Path == l.Name || strings.HasPrefix(p.Path, l.Name+"/")
}

// refusal says what is wrong with a newcomer, what is in itself first, and whether that is so only beside the others.
func (n newcomers) refusal(i int, problems []parse.Problem) error {
	first := max(0, slices.IndexFunc(problems, func(p parse.Problem) bool { return isIn(p, *n.fresh[i]) }))
	beside := "beside the bot's other policies: "
	if slices.Contains(set{n.fresh[i]}.problems(n.compile), problems[first]) {
		beside = ""
	}
	return fmt.Errorf("%s%w%s", beside, problems[first], more(len(problems)-1))
}
