package index

import (
	"errors"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// outputsOf gives the tree of an environment's output, and the commit that it is of. With a *tree.Error it gives the
// tree as it was read last; nil: it was not.
type outputsOf func(v1alpha1.Environment) (out tree.Tree, commit string, err error)

// environment reads an environment. Where its tree, or that of its output, cannot be read it is as it could be read
// last, and where its policies or data cannot be it is judged by the last that could: then traffic only goes down. What
// was never read says what is wrong, and nothing of it is decided.
func (r *Reader) environment(blank environment, outputs outputsOf, owners map[string]string) (*environment, error) {
	var err error
	blank.out, blank.world.Base, err = outputs(blank.world.Environment)
	e := &environment{}
	*e = blank
	if unread, ok := errors.AsType[*tree.Error](err); ok && e.out != nil {
		p := v1alpha1.Problem{Severity: v1alpha1.Error, File: unread.Path, Message: unread.Error()}
		e.world.Unusable, e.world.Unrecorded, err = asBefore(p), true, nil
		e.world.Problems = append(e.world.Problems, p)
	}
	if err == nil {
		err = e.read(owners)
	}
	if bomb, ok := errors.AsType[*tree.Error](err); ok {
		blank.world.Unrecorded = e.world.Unrecorded
		return r.asReadLast(blank, bomb, owners)
	}
	if err == nil && r.last != nil && e.policyProblem == nil && !e.world.Unrecorded {
		r.noteUsable(e)
	}
	return e, err
}

// noteUsable notes an environment that could be read.
func (r *Reader) noteUsable(e *environment) {
	if r.last.read == nil {
		r.last.read = map[string]readLast{}
	}
	name := e.world.Environment.Name
	r.last.read[name] = readLast{specs: e.tree, out: e.out, policies: e.world.Policies, data: e.world.Data}
	delete(r.last.nothing, name)
}

// asReadLast reads an environment from the last tree from which that works, with its records as they are if these can
// be read.
func (r *Reader) asReadLast(blank environment, bomb *tree.Error, owners map[string]string) (*environment, error) {
	p := v1alpha1.Problem{Severity: v1alpha1.Error, File: bomb.Path, Message: bomb.Error()}
	var found *environment
	var failed error
	r.before(&blank, p, func(was readLast) (more bool) {
		// those of before only where the present ones cannot be read
		for _, records := range []tree.Tree{blank.out, was.out} {
			if records == nil {
				continue
			}
			e := blank
			e.tree, e.out, e.world.Unusable = was.specs, records, asBefore(p)
			e.world.Unrecorded = blank.world.Unrecorded || records != blank.out
			err := e.read(owners)
			switch {
			case err == nil:
				found = &e
				return false
			case !neverRead(err):
				failed = err
				return false
			}
		}
		return true
	})
	if found == nil {
		found, p.Message = &blank, p.Message+": nothing of the environment is decided"
	}
	found.world.Problems = append(found.world.Problems, p)
	return found, failed
}

// judgedAsBefore gives the environment the last policies and data that could be read, where its own cannot be. Where
// none are known, what is wrong with them holds every raise, and the library judges.
func (e *environment) judgedAsBefore() error {
	if e.policyProblem == nil {
		return nil
	}
	p := *e.policyProblem
	var failed error
	e.before(e, p, func(was readLast) (more bool) {
		if was.policies == nil && was.data == nil {
			at, err := e.policiesAt(was.specs)
			if at == nil && err == nil {
				return true
			}
			if failed = err; err != nil {
				return false
			}
			was.policies, was.data = at.Policies, at.Data
		}
		e.world.Policies, e.world.Data = was.policies, was.data
		if e.world.Unusable == nil {
			e.world.Unusable = asBefore(p)
		}
		return false
	})
	return failed
}

// policiesAt reads policies and data as an earlier tree has them, by its own configuration; nil: they could not be read
// there either.
func (e *environment) policiesAt(t tree.Tree) (*rollout.EnvironmentWorld, error) {
	c, err := e.configuration(t)
	if err != nil {
		return nil, err
	}
	at := *e
	at.tree, at.world, at.policyProblem = t, rollout.EnvironmentWorld{Environment: e.world.Environment,
		ByOther: e.world.ByOther}, nil
	for _, is := range c.environments {
		if is.Name == e.world.Environment.Name && is.Problem == nil {
			at.world.Environment.Policies, at.world.Environment.Data = is.Policies, is.Data
		}
	}
	if err = at.policies(); neverRead(err) || err == nil && at.policyProblem != nil {
		return nil, nil //nolint:nilerr // an earlier commit that cannot be used either is skipped
	}
	return &at.world, err
}

// neverRead reports whether a tree cannot be read, or not any more, however often it is tried. What an earlier commit
// had may be gone from the mirror.
func neverRead(err error) bool {
	var bomb *tree.Error
	var missing *git.MissingObjectError
	return errors.As(err, &bomb) || errors.As(err, &missing)
}

// before visits how an environment was read before: what is remembered of it, else what its branch's history has.
func (r *Reader) before(e *environment, p v1alpha1.Problem, visit func(readLast) (more bool)) {
	name := e.world.Environment.Name
	if r.last == nil || r.last.nothing[name] == p.Message {
		return
	}
	if was, ok := r.last.read[name]; ok {
		visit(readLast{specs: tree.WithContextOf(was.specs, e.tree), out: tree.WithContextOf(was.out, e.tree),
			policies: was.policies, data: was.data})
		return
	}
	if r.last.Earlier == nil {
		return
	}
	found := false
	whole := r.last.Earlier(func(t tree.Tree) bool {
		found = !visit(readLast{specs: t, out: t})
		return !found
	})
	if !found && whole {
		if r.last.nothing == nil {
			r.last.nothing = map[string]string{}
		}
		r.last.nothing[name] = p.Message
	}
}

func asBefore(p v1alpha1.Problem) *rollout.Problem {
	return &rollout.Problem{Reason: rollout.InvalidConfiguration,
		Message: p.String() + ": until it is mended, traffic only goes down, by what could be read last"}
}
