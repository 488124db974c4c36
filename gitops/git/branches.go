package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
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
	req, err := updateRequest(adv.Capabilities, &packp.Command{Name: plumbing.ReferenceName(refOf(branch)), Old: tip})
	if err != nil {
		return err
	}
	if !adv.Capabilities.Supports(capability.DeleteRefs) {
		return &RejectedError{URL: m.url, Branch: branch, Reason: "the server deletes no branches"}
	}
	output := &head{}
	req.Packfile, req.Progress = io.NopCloser(bytes.NewReader(nil)), output
	report, err := sess.push(ctx, req)
	var refused *AccessError
	switch {
	case errors.As(err, &refused):
		return refused
	case err != nil:
		return &UnknownOutcomeError{Branch: branch, Err: fmt.Errorf("delete it: %w", err)}
	case req.Capabilities.Supports(capability.ReportStatus) && report.Error() != nil:
		said := func(text string) string { return cleanText(m.remote.hide(text)) }
		return protected(&RejectedError{URL: m.url, Branch: branch, Reason: said(report.Error().Error()),
			Output: said(output.String())})
	}
	m.forgetBranch(branch)
	return nil
}
