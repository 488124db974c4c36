package git

import "context"

// MayPush opens a conversation for a push and sends nothing: most servers refuse there what credentials may not do.
// That one branch is protected they say only when something is pushed. Errors: *AccessError, the context's.
func (m *Mirror) MayPush(ctx context.Context, branch string) error {
	if err := checkBranch(branch); err != nil {
		return err
	}
	ctx, give, err := m.take(ctx)
	if err != nil {
		return err
	}
	defer give()
	_, err = m.remoteTip(ctx, branch)
	return err
}
