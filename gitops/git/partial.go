package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// A mirror is partial where the server leaves blobs out when it is asked to: commits and trees are all there, and
// blobs come as they are asked for. A branch's first fetch and its history come without blobs; what is new on top of
// what is there comes with them.

// filterFor is what to leave out of a branch's snapshot or history; "" where nothing can be. Other refs are small, and
// their blobs are all read, unless the mirror is one of tips alone.
func (m *Mirror) filterFor(branch string, caps *capability.List) packp.Filter {
	if m.refusals >= maxRefusals || !caps.Supports(capability.Filter) {
		return ""
	}
	if !m.tips && (m.isWhole() || !strings.HasPrefix(refOf(branch), branchPrefix)) {
		return ""
	}
	// Over HTTP, a server does not know which refs it named a moment before, and gives whatever is below one of them.
	if _, stateless := m.remote.(*httpRemote); !stateless && !caps.Supports(capability.AllowReachableSHA1InWant) {
		return ""
	}
	return noBlobs
}

// isWhole says whether branches were fetched with all that is in them: there is no need to begin with less.
func (m *Mirror) isWhole() bool {
	if m.store.isPartial() {
		return false
	}
	for branch := range m.state.tips {
		if strings.HasPrefix(refOf(branch), branchPrefix) {
			return true
		}
	}
	return false
}

// becomePartial notes, before the first objects come, that blobs may be missing.
func (m *Mirror) becomePartial() error {
	if m.store.isPartial() {
		return nil
	}
	if err := replaceFile(filepath.Join(m.dir, configFile), configText(m.url, true)); err != nil {
		return err
	}
	return m.store.becomePartial()
}

// Partial says whether blobs may be missing, which Bring brings.
func (m *Mirror) Partial() bool { return m.store.isPartial() }

// Filled is how often the mirror was emptied, to be filled anew, since it was opened.
func (m *Mirror) Filled() int { return m.store.timesEmptied() }

// Lacking are those of some objects that the mirror has not got, each once.
func (m *Mirror) Lacking(objects []Hash) []Hash { return m.store.lacking(objects) }

// Bring makes sure that blobs are there, which trees of this mirror name. Those that a partial mirror lacks it asks the
// server for, all of them together; nothing is asked where all are there. Errors: *MissingObjectError where the mirror
// is whole, or the server does not give what it has to; those of Fetch. A mirror whose server refuses again and again
// is filled anew at the next fetch, as a whole.
func (m *Mirror) Bring(ctx context.Context, blobs []Hash) error {
	missing := m.store.lacking(blobs)
	if len(missing) == 0 {
		return nil
	}
	if !m.store.isPartial() {
		return m.store.needed(&MissingObjectError{Hash: missing[0], kind: plumbing.BlobObject, filled: m.Filled()})
	}
	ctx, give, err := m.take(ctx)
	if err != nil {
		return err
	}
	defer give()
	missing = m.store.lacking(missing) // somebody else may have had the turn before
	for part := range slices.Chunk(missing, m.store.limits.wants) {
		if err := m.bring(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// bring asks for blobs.
func (m *Mirror) bring(ctx context.Context, wants []Hash) error {
	if r, ok := m.remote.(*httpRemote); ok && m.offers != nil {
		if sess, err := r.goOn(ctx, uploadPack); err == nil && m.bringFrom(ctx, sess, m.offers, wants) == nil {
			m.refusals = 0
			return nil
		}
		wants = m.store.lacking(wants)
	}
	sess, adv, err := m.remote.open(ctx, uploadPack)
	if err != nil {
		return err
	}
	if err = m.bringFrom(ctx, sess, adv.Capabilities, wants); err == nil {
		m.refusals = 0
		return nil
	}
	if ctx.Err() != nil {
		return interrupted(ctx, uploadPack, address{display: m.url})
	}
	err = fmt.Errorf("fetch %d objects: %w", len(wants), err)
	if isRefusal(err) {
		if m.refusals++; m.refusals >= maxRefusals {
			m.store.spoil(err)
		}
	}
	return err
}

// isRefusal says whether a server that works does not give objects: it says so, or sends everything but them.
func isRefusal(err error) bool {
	var (
		missing *MissingObjectError
		line    *pktline.ErrorLine
		access  *AccessError
	)
	switch {
	case errors.As(err, &missing), errors.As(err, &line):
		return true
	case errors.As(err, &access) && access.Reason == ReasonServer:
		// go-git's client for HTTP keeps of the server's line only the text: git's, and that of JGit.
		return strings.Contains(access.Detail, "not our ref") || strings.Contains(access.Detail, "not valid")
	}
	return false
}

// bringFrom brings blobs by a conversation of its own, and looks whether they came.
func (m *Mirror) bringFrom(ctx context.Context, sess session, caps *capability.List, wants []Hash) error {
	f := &fetcher{Mirror: m}
	if err := f.ask(ctx, sess, caps, wants); err != nil {
		return err
	}
	if still := m.store.lacking(wants); len(still) > 0 {
		return &MissingObjectError{Hash: still[0], kind: plumbing.BlobObject}
	}
	if f.onDisk {
		return m.persist()
	}
	return nil
}

// ask has the one request of a conversation, and ends it.
func (f *fetcher) ask(ctx context.Context, sess session, caps *capability.List, wants []Hash) error {
	defer sess.close()
	if len(wants) == 0 {
		return nil
	}
	return f.download(ctx, sess, caps, request{wants: slices.Clone(wants)})
}

// maxRefusals is how often in a row a server that named its refs may refuse objects, before it is believed that it
// gives none.
const maxRefusals = 3

// promisorSuffix is of the files that tell git of packs whose objects may name others that are not there.
const promisorSuffix = ".promisor"

// markPromised marks the packs of a partial mirror, for git when it looks at one.
func markPromised(dir string) error {
	stems, err := packsIn(dir)
	if err != nil {
		return err
	}
	for _, stem := range stems {
		mark := filepath.Join(dir, stem+promisorSuffix)
		if err := os.WriteFile(mark, nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}
