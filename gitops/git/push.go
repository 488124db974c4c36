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
// *RejectedError, *ProtectedError, *UnknownOutcomeError, *AccessError (nothing was sent), the context's (nothing was
// sent).
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

// send sends a commit, without asking where its branch is if the push before told what the server can do: the server
// compares the branch with Expected as well. Where that fails, it asks. rejected is what the server said against the
// commit.
func (m *Mirror) send(ctx context.Context, s *Staged, pack []byte) (rejected *RejectedError, err error) {
	u := update{s.Branch, s.Expected, s.Commit, pack}
	caps := m.takes
	if caps == nil {
		return m.askAndSend(ctx, u)
	}
	m.takes = nil
	sess, err := m.remote.(*httpRemote).goOn(ctx, receivePack)
	if err != nil {
		return nil, err
	}
	rejected, err = m.update(ctx, sess, caps, u)
	sess.close()
	access, unsent := errors.AsType[*AccessError](err)
	switch {
	case err == nil && rejected == nil:
		m.takes = caps
		return nil, nil
	case err == nil, ctx.Err() != nil, unsent && !access.Refused():
		return rejected, err
	}
	rejected, again := m.askAndSend(ctx, u)
	if _, silent := errors.AsType[*AccessError](again); silent && !unsent {
		return nil, err // the first try may have got through
	}
	return rejected, again
}

// askAndSend asks where the branch is, and sends a commit that goes on top.
func (m *Mirror) askAndSend(ctx context.Context, u update) (rejected *RejectedError, err error) {
	sess, adv, err := m.remote.open(ctx, receivePack)
	if err != nil {
		return nil, err
	}
	defer sess.close()
	switch actual := adv.References[refOf(u.branch)]; actual {
	case u.from:
	case u.to: // an earlier try of unknown outcome got through
		return nil, nil
	default:
		return nil, &MovedError{Branch: u.branch, Expected: u.from, Actual: actual}
	}
	rejected, err = m.update(ctx, sess, adv.Capabilities, u)
	if _, stateless := m.remote.(*httpRemote); stateless && rejected == nil && err == nil {
		m.takes = adv.Capabilities
	}
	return rejected, err
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
			return protected(rejected)
		}
		actual, err := m.remoteTip(ctx, s.Branch)
		if err != nil {
			return fmt.Errorf("%w; and its tip could not be read: %w", protected(rejected), err)
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
