package git

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
)

// Tip is where a branch stands.
type Tip struct {
	Branch   string
	Commit   Hash
	Tree     Hash
	Previous Hash // the tip that the mirror knew before, in this run or an earlier one; zero: none
	// Rewritten says that the branch was force-pushed: Previous is not in its history.
	Rewritten bool
	// Before is the tip that the branch had before it was rewritten last, as far as the mirror knows; zero: it was not.
	Before Hash
}

// errStartOver says that what the mirror has is of no use for what is asked.
var errStartOver = errors.New("the mirror has no commit to go on from: fetch the branch anew")

// Fetch makes the branch's tip available and returns it. When nothing moved it costs one advertisement.
// Only the tip's commit is fetched at first, later everything since.
// Errors: *NoBranchError, *EmptyRepositoryError, *AccessError, the context's.
func (m *Mirror) Fetch(ctx context.Context, branch string) (Tip, error) {
	if err := checkBranch(branch); err != nil {
		return Tip{}, err
	}
	ctx, give, err := m.take(ctx)
	if err != nil {
		return Tip{}, err
	}
	defer give()
	if damage := m.store.damage(); damage != nil {
		if err := m.rebuild(damage); err != nil {
			return Tip{}, fmt.Errorf("empty mirror %s: %w", m.dir, err)
		}
	}
	return m.fetch(ctx, branch)
}

func (m *Mirror) fetch(ctx context.Context, branch string) (Tip, error) {
	previous := m.state.tips[branch]
	f := &fetcher{Mirror: m, branch: branch}
	err := f.run(ctx, previous)
	if m.refusals < maxRefusals && ctx.Err() == nil && refusesFilter(err) { // which it offered
		m.refusals = maxRefusals
		err = f.run(ctx, previous)
	}
	if !previous.IsZero() && ctx.Err() == nil && isProtocol(err) {
		m.log.Info("branch is fetched anew", "branch", branch, "reason", err)
		f.anew = true
		err = f.run(ctx, Hash{})
	}
	if err != nil {
		return Tip{}, err
	}
	c, err := m.Commit(f.tip)
	if err != nil {
		return Tip{}, err
	}
	tip := Tip{Branch: branch, Commit: c.Hash, Tree: c.Tree, Previous: previous}
	onto := f.onto(previous)
	tip.Rewritten = onto == noAncestor
	noted := m.noteBefore(&tip, onto)
	if tip.Commit == previous {
		return tip, nil
	}
	m.state.tips[branch] = f.tip
	if f.onDisk || noted {
		if err := m.persist(); err != nil {
			return Tip{}, fmt.Errorf("write mirror %s: %w", m.dir, err)
		}
	}
	return tip, nil
}

// refusesFilter says whether git on the server does not leave out what it was asked to.
func refusesFilter(err error) bool {
	return isProtocol(err) && strings.Contains(err.Error(), "filter '"+string(noBlobs)+"' not supported")
}

// isProtocol says whether a fetch may succeed when it is asked for in another way.
func isProtocol(err error) bool {
	var (
		access *AccessError
		none   *NoBranchError
		empty  *EmptyRepositoryError
	)
	switch {
	case err == nil, errors.As(err, &none), errors.As(err, &empty):
		return false
	case errors.As(err, &access):
		return access.Reason == ReasonServer
	}
	return true
}

// fetcher is one Fetch.
type fetcher struct {
	*Mirror
	branch string

	tip        Hash
	downloaded bool // objects came
	anew       bool // without regard to what the mirror has
	onDisk     bool // they went to disk
	lost       bool // the server does not know the previous tip any more
}

// run asks for the tip and downloads what is missing, on top of have unless that is zero.
func (f *fetcher) run(ctx context.Context, have Hash) error {
	sess, adv, err := f.remote.open(ctx, uploadPack)
	if err != nil {
		return err
	}
	defer sess.close()
	f.offers = adv.Capabilities
	if f.tip, err = f.findTip(adv, f.branch); err != nil {
		return err
	}
	if f.store.has(f.tip) && !f.anew {
		return nil
	}
	if f.tips {
		have = Hash{} // the server sends all of a commit that is not based on it
	}
	req := request{wants: []Hash{f.tip}, have: have}
	if have.IsZero() {
		req.depth = 1
		req.filter = f.filterFor(f.branch, adv.Capabilities)
	}
	f.downloaded = true
	err = f.download(ctx, sess, adv.Capabilities, req)
	if err != nil && ctx.Err() != nil {
		return interrupted(ctx, uploadPack, address{display: f.url})
	}
	return err
}

// findTip reads the branch's tip from an advertisement.
func (m *Mirror) findTip(adv *packp.AdvRefs, branch string) (Hash, error) {
	if tip, ok := adv.References[refOf(branch)]; ok {
		return tip, nil
	}
	if adv.IsEmpty() {
		return Hash{}, &EmptyRepositoryError{URL: m.url, Branch: branch}
	}
	none := &NoBranchError{URL: m.url, Branch: branch}
	for ref := range adv.References {
		if name, ok := strings.CutPrefix(ref, branchPrefix); ok {
			none.Branches = append(none.Branches, name)
		}
	}
	slices.Sort(none.Branches)
	return Hash{}, none
}

// onto says whether the tip is on top of the previous one. It is not known where too much happened to tell without all
// of the history.
func (f *fetcher) onto(previous Hash) ancestry {
	if previous.IsZero() || previous == f.tip {
		return isAncestor
	}
	is := f.ancestry(previous, f.tip)
	if is != ancestryUnknown {
		return is
	}
	switch {
	case f.lost, f.downloaded && !f.anew: // the server sent all there is on top of what it shares with previous
		return noAncestor
	case f.store.has(previous) && f.ancestry(f.tip, previous) == isAncestor:
		return noAncestor
	}
	return ancestryUnknown
}

// request is what to ask the server for.
type request struct {
	wants  []Hash
	have   Hash // may be zero
	depth  int  // commits from wants on; zero: all that is not below have
	filter packp.Filter
}

func (m *Mirror) uploadRequest(caps *capability.List, r request) (*packp.UploadPackRequest, error) {
	req := packp.NewUploadPackRequestFromCapabilities(caps)
	req.Wants = r.wants
	req.Filter = r.filter
	if !r.have.IsZero() {
		req.Haves = []Hash{r.have}
	}
	// To find what a delta on an offset is on, go-git makes a table of all objects of the pack.
	req.Capabilities.Delete(capability.OFSDelta)
	set := []capability.Capability{capability.NoProgress}
	if r.filter != "" {
		set = append(set, capability.Filter)
	}
	// else all of the history comes, which is right too
	if caps.Supports(capability.Shallow) && (r.depth > 0 || !r.have.IsZero()) {
		req.Depth = packp.DepthCommits(r.depth)
		if !r.have.IsZero() {
			req.Shallows = m.state.shallowList()
		}
		set = append(set, capability.Shallow)
	}
	for _, c := range set {
		if !caps.Supports(c) {
			continue
		}
		if err := req.Capabilities.Set(c); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// download gets one pack into the mirror.
func (f *fetcher) download(ctx context.Context, sess session, caps *capability.List, r request) error {
	req, err := f.uploadRequest(caps, r)
	if err != nil {
		return err
	}
	resp, err := sess.fetch(ctx, req)
	if err != nil {
		return err
	}
	if !r.have.IsZero() && len(resp.ACKs) == 0 {
		f.lost = true
		return fmt.Errorf("%w: the server does not know %s any more", errStartOver, r.have)
	}
	if r.filter != "" {
		if err := f.becomePartial(); err != nil {
			return err
		}
	}
	// The cuts are on disk before the commits: see the package's invariants.
	if err := f.noteCuts(resp.Shallows, nil); err != nil {
		return err
	}
	var pack io.Reader = resp
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		pack = sideband.NewDemuxer(sideband.Sideband64k, resp)
	case req.Capabilities.Supports(capability.Sideband):
		pack = sideband.NewDemuxer(sideband.Sideband, resp)
	}
	most := uint32(math.MaxUint32)
	if !r.have.IsZero() && r.depth == 0 {
		most = f.store.limits.increment
	}
	if err := f.receive(pack, most); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, resp); err != nil {
		return err
	}
	return f.noteCuts(nil, resp.Unshallows)
}

// receive stores a pack of at most that many objects: one that is not too large by way of memory, a larger one to disk.
func (f *fetcher) receive(pack io.Reader, most uint32) error {
	var start bytes.Buffer
	if _, err := io.CopyN(&start, pack, packHeader); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read pack: %w", err)
	}
	if start.Len() < packHeader || !bytes.HasPrefix(start.Bytes(), []byte("PACK")) {
		return fmt.Errorf("read pack: the server sent %d bytes that are not a pack", start.Len())
	}
	count := binary.BigEndian.Uint32(start.Bytes()[8:packHeader])
	if count == 0 {
		return nil
	}
	if count > most {
		return fmt.Errorf("%w: the pack has %d objects, want at most %d", errStartOver, count, most)
	}
	whole := io.MultiReader(&start, pack)
	if int64(count)*usualObject <= f.store.limits.inflated {
		read, err := readPack(whole, f.store.limits.fetch, f.store.limits.inflated)
		switch {
		case err == nil:
			return f.takeIn(read)
		case !errors.Is(err, errBatchFull):
			return fmt.Errorf("read pack: %w", err)
		}
		whole = io.MultiReader(bytes.NewReader(read.came.whole()), whole)
	}
	f.onDisk = true
	return f.store.writePack(whole)
}

// takeIn stores a pack that is in memory as a whole.
func (f *fetcher) takeIn(came *unpacking) error {
	objs, p, err := came.objects()
	if errors.Is(err, errBatchFull) {
		f.onDisk = true
		return f.store.writePack(bytes.NewReader(p.data))
	}
	if err != nil {
		return fmt.Errorf("read pack: %w", err)
	}
	onDisk, err := f.store.addReceived(objs, p)
	f.onDisk = f.onDisk || onDisk
	return err
}

// noteCuts notes where history ends in this mirror, and where it does not any more.
func (m *Mirror) noteCuts(ends, goesOn []Hash) error {
	if len(ends)+len(goesOn) == 0 {
		return nil
	}
	for _, h := range ends {
		m.state.shallow[h] = true
	}
	for _, h := range goesOn {
		delete(m.state.shallow, h)
	}
	return m.state.writeShallow(m.dir)
}
