package git

import (
	"context"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// Branches asks the server for the tips of all branches, or other refs in full, whose names begin with prefix. It costs
// one advertisement, and brings no objects. Errors: *AccessError, the context's.
func (m *Mirror) Branches(ctx context.Context, prefix string) (map[string]Hash, error) {
	ctx, give, err := m.take(ctx)
	if err != nil {
		return nil, err
	}
	defer give()
	sess, adv, err := m.remote.open(ctx, uploadPack)
	if err != nil {
		return nil, err
	}
	defer sess.close()
	out := map[string]Hash{}
	for ref, hash := range adv.References {
		if strings.HasPrefix(ref, refOf(prefix)) {
			out[branchOf(ref)] = hash
		}
	}
	return out, nil
}

// Delete deletes a branch that is still at tip. A branch that is gone already is not an error. Errors: *MovedError,
// *RejectedError, *UnknownOutcomeError, *AccessError (nothing was sent), the context's (nothing was sent).
func (m *Mirror) Delete(ctx context.Context, branch string, tip Hash) error {
	if err := checkBranch(branch); err != nil {
		return err
	}
	ctx, give, err := m.take(ctx)
	if err != nil {
		return err
	}
	defer give()
	sess, adv, err := m.remote.open(ctx, receivePack)
	if err != nil {
		return err
	}
	defer sess.close()
	switch actual, there := adv.References[refOf(branch)]; {
	case !there:
		m.forgetBranch(branch)
		return nil
	case actual != tip:
		return &MovedError{Branch: branch, Expected: tip, Actual: actual}
	}
	if !adv.Capabilities.Supports(capability.DeleteRefs) {
		return &RejectedError{URL: m.url, Branch: branch, Reason: "the server deletes no branches"}
	}
	rejected, err := m.update(ctx, sess, adv.Capabilities, update{branch: branch, from: tip})
	if rejected != nil {
		return protected(rejected)
	}
	if err == nil {
		m.forgetBranch(branch)
	}
	return err
}
