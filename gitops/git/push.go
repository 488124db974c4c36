package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// Push sends a staged commit; the branch moves from its Expected to it, or not at all. Afterwards its objects are in
// the mirror and the branch's tip is known without another fetch. Errors: ErrNothingStaged, *MovedError,
// *RejectedError, *ProtectedError, *UnknownOutcomeError, *AccessError and the context's (nothing was sent, or it was
// refused and the branch could not be read).
func (m *Mirror) Push(ctx context.Context, s *Staged) (Hash, error) {
	if s.Unchanged() {
		return Hash{}, ErrNothingStaged
	}
	pack, err := encodePack(s.objs)
	if err != nil {
		return Hash{}, fmt.Errorf("write pack: %w", err)
	}
	ctx, give, err := m.take(ctx)
	if err != nil {
		return Hash{}, err
	}
	defer give()
	rejected, err := m.send(ctx, s, pack.data)
	if rejected != nil {
		err = m.refused(ctx, s, rejected)
	}
	if err != nil {
		return Hash{}, err
	}
	if err := m.store.addPacked(s.objs, pack); err != nil {
		// It is on the server, which is what counts; the next fetch brings it again.
		m.log.Warn("pushed commit could not be kept in the mirror", "commit", s.Commit, "reason", err)
		return s.Commit, nil
	}
	m.state.tips[s.Branch] = s.Commit
	return s.Commit, nil
}

// send sends a commit on top of Expected. If the push before got through, it does not ask first where the branch is:
// the server compares it with Expected as well. Where the server does not take the credentials or the address any more,
// it starts over and asks. rejected is what the server said against the commit.
func (m *Mirror) send(ctx context.Context, s *Staged, pack []byte) (rejected *RejectedError, err error) {
	u := update{s.Branch, s.Expected, s.Commit, pack}
	if caps := m.takes; caps != nil {
		m.takes = nil
		rejected, err = m.sendUnasked(ctx, caps, u)
		if rejected == nil && err == nil {
			m.takes = caps
		}
		if access, ok := errors.AsType[*AccessError](err); !ok || !access.Refused() {
			return rejected, err
		}
	}
	sess, adv, err := m.remote.open(ctx, receivePack)
	if err != nil {
		return nil, err
	}
	defer sess.close()
	switch actual := adv.References[refOf(s.Branch)]; actual {
	case s.Expected:
	case s.Commit: // an earlier try of unknown outcome got through
		return nil, nil
	default:
		return nil, &MovedError{Branch: s.Branch, Expected: s.Expected, Actual: actual}
	}
	rejected, err = m.update(ctx, sess, adv.Capabilities, u)
	if h, ok := sess.(*httpSession); ok && h.bodies.redirected == "" && rejected == nil && err == nil {
		m.takes = adv.Capabilities
	}
	return rejected, err
}

// sendUnasked sends an update without asking where the branch is.
func (m *Mirror) sendUnasked(ctx context.Context, caps *capability.List, u update) (*RejectedError, error) {
	sess, err := m.remote.(*httpRemote).goOn(ctx, receivePack)
	if err != nil {
		return nil, err
	}
	defer sess.close()
	return m.update(ctx, sess, caps, u)
}

// update moves a branch; a zero to deletes it.
type update struct {
	branch   string
	from, to Hash
	pack     []byte
}

// update asks the server for an update. rejected is what the server said against it.
func (m *Mirror) update(ctx context.Context, sess session, caps *capability.List, u update) (rejected *RejectedError,
	err error) {
	req, err := updateRequest(caps, &packp.Command{Name: plumbing.ReferenceName(refOf(u.branch)), Old: u.from,
		New: u.to})
	if err != nil {
		return nil, err
	}
	output := &head{}
	req.Packfile, req.Progress = io.NopCloser(bytes.NewReader(u.pack)), output
	report, err := sess.push(ctx, req)
	if _, sent := errors.AsType[*sentError](err); err != nil && !sent {
		return nil, err
	}
	if err == nil && !req.Capabilities.Supports(capability.ReportStatus) {
		err = errors.New("the server does not report what it did")
	}
	if err != nil {
		if u.to.IsZero() {
			err = fmt.Errorf("delete it: %w", err)
		}
		return nil, &UnknownOutcomeError{Branch: u.branch, Commit: u.to, Err: err}
	}
	if report.Error() == nil {
		return nil, nil
	}
	said := func(text string) string { return cleanText(m.remote.hide(text)) }
	return &RejectedError{URL: m.url, Branch: u.branch, Reason: said(report.Error().Error()),
		Output: said(output.String())}, nil
}

func updateRequest(caps *capability.List, c *packp.Command) (*packp.ReferenceUpdateRequest, error) {
	req := packp.NewReferenceUpdateRequestFromCapabilities(caps)
	req.Commands = []*packp.Command{c}
	// Hooks and forges say on the side band why they refuse.
	for _, want := range []capability.Capability{capability.Sideband64k, capability.Quiet} {
		if !caps.Supports(want) {
			continue
		}
		if err := req.Capabilities.Set(want); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// rereads is how long to wait before each look at the tip after a refusal. The writer that won may still hold the lock
// and not have moved the branch yet.
var rereads = []time.Duration{0, 50 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond}

// refused tells a lost race from a refusal: by where the branch is, not by what the server says.
func (m *Mirror) refused(ctx context.Context, s *Staged, rejected *RejectedError) error {
	for _, wait := range rereads {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		actual, err := m.remoteTip(ctx, s.Branch)
		if err != nil { // the branch may have moved: it is not known why the commit was refused
			return fmt.Errorf("%w; before that, %s", err, rejected.Error())
		}
		switch actual {
		case s.Expected:
		case s.Commit: // something in between sent it twice, and the first got through
			return nil
		default:
			return &MovedError{Branch: s.Branch, Expected: s.Expected, Actual: actual}
		}
	}
	return protected(rejected)
}

// remoteTip asks where a branch is; zero when it does not exist.
func (m *Mirror) remoteTip(ctx context.Context, branch string) (Hash, error) {
	sess, adv, err := m.remote.open(ctx, receivePack)
	if err != nil {
		return Hash{}, err
	}
	defer sess.close()
	return adv.References[refOf(branch)], nil
}
