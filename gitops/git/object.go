package git

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Hash is the name of a Git object. The zero value stands for "none".
type Hash = plumbing.Hash

// Mode is the mode of a tree entry as Git writes it.
type Mode = filemode.FileMode

// The modes that a tree entry may have. ModeFile is what Stage writes unless told otherwise.
const (
	ModeFile       Mode = filemode.Regular
	ModeExecutable Mode = filemode.Executable
	ModeSymlink    Mode = filemode.Symlink
	ModeDir        Mode = filemode.Dir
	ModeSubmodule  Mode = filemode.Submodule
)

// Entry is one line of a tree.
type Entry struct {
	Name string
	Mode Mode
	Hash Hash
}

// typeBits are those of a mode that say what an entry is, to git too: old repositories hold modes such as 0100664.
const typeBits Mode = 0o170000

// IsDir says whether the entry is a subtree.
func (e Entry) IsDir() bool { return e.Mode&typeBits == ModeDir }

// IsFile says whether the entry is a blob that is not a symbolic link.
func (e Entry) IsFile() bool { return e.Mode&typeBits == ModeFile&typeBits }

// Signature is who made a commit and when; seconds and the zone are kept.
type Signature struct {
	Name  string
	Email string
	When  time.Time
}

// CommitInfo is a commit without its tree's content.
type CommitInfo struct {
	Hash      Hash
	Tree      Hash
	Parents   []Hash
	Author    Signature
	Committer Signature
	Message   string
}

// emptyTree is the tree without entries, which Git knows under this name everywhere.
var emptyTree = plumbing.ComputeHash(plumbing.TreeObject, nil)

// obj is one object in memory. data is never written to after hash was computed.
type obj struct {
	hash Hash
	kind plumbing.ObjectType
	data []byte
}

func newObj(kind plumbing.ObjectType, data []byte) obj {
	return obj{hash: plumbing.ComputeHash(kind, data), kind: kind, data: data}
}

var errTree = errors.New("malformed tree")

// parseTree decodes a tree object. The entries share one copy of the data for their names.
func parseTree(data []byte) ([]Entry, error) {
	const least = len("100644 x\x00") + len(Hash{})
	entries := make([]Entry, 0, len(data)/(least+4)+1)
	text := string(data)
	for len(text) > 0 {
		space := strings.IndexByte(text, ' ')
		if space < 1 {
			return nil, fmt.Errorf("%w: no mode", errTree)
		}
		mode, err := strconv.ParseUint(text[:space], 8, 32)
		if err != nil {
			return nil, fmt.Errorf("%w: mode %q", errTree, text[:space])
		}
		text = text[space+1:]
		end := strings.IndexByte(text, 0)
		if end < 1 || len(text) < end+1+len(Hash{}) {
			return nil, fmt.Errorf("%w: no name or no hash", errTree)
		}
		e := Entry{Name: text[:end], Mode: Mode(mode)}
		copy(e.Hash[:], text[end+1:])
		entries = append(entries, e)
		text = text[end+1+len(Hash{}):]
	}
	return entries, nil
}

// encodeTree is the inverse of parseTree. The entries must be in git's order.
func encodeTree(entries []Entry) []byte {
	size := 0
	for i := range entries {
		size += len(entries[i].Name) + len(Hash{}) + 8
	}
	out := make([]byte, 0, size)
	for i := range entries {
		out = strconv.AppendUint(out, uint64(entries[i].Mode), 8)
		out = append(out, ' ')
		out = append(out, entries[i].Name...)
		out = append(out, 0)
		out = append(out, entries[i].Hash[:]...)
	}
	return out
}

// compareEntries orders entries as git does: a directory's name counts as if it ended in a slash.
func compareEntries(a, b Entry) int {
	n := min(len(a.Name), len(b.Name))
	if c := strings.Compare(a.Name[:n], b.Name[:n]); c != 0 {
		return c
	}
	return int(nextByte(a, n)) - int(nextByte(b, n))
}

func nextByte(e Entry, i int) byte {
	switch {
	case i < len(e.Name):
		return e.Name[i]
	case e.IsDir():
		return '/'
	}
	return 0
}

// ParseTree decodes a tree object. The entries are in git's order, whatever order somebody wrote them in.
func ParseTree(data []byte) ([]Entry, error) {
	entries, err := parseTree(data)
	// git fsck refuses it, but someone may have pushed it
	if err == nil && !slices.IsSortedFunc(entries, compareEntries) {
		slices.SortStableFunc(entries, compareEntries)
	}
	return entries, err
}

// ParseCommit decodes a commit object of at most MaxCommit bytes, or the beginning of a larger one.
func ParseCommit(h Hash, data []byte) (CommitInfo, error) {
	if len(data) >= MaxCommit && !bytes.Contains(data, []byte("\n\n")) {
		return CommitInfo{}, fmt.Errorf("the header of the commit is larger than %d bytes", MaxCommit)
	}
	var raw plumbing.MemoryObject
	raw.SetType(plumbing.CommitObject)
	if _, err := raw.Write(data); err != nil {
		return CommitInfo{}, err
	}
	var c object.Commit
	if err := c.Decode(&raw); err != nil {
		return CommitInfo{}, err
	}
	return CommitInfo{
		Hash:      h,
		Tree:      c.TreeHash,
		Parents:   c.ParentHashes,
		Author:    Signature(c.Author),
		Committer: Signature(c.Committer),
		Message:   cutMessage(c.Message),
	}, nil
}

// cutMessage keeps the beginning of a message: at most MaxMessage bytes, in whole characters.
func cutMessage(text string) string {
	if len(text) <= MaxMessage {
		return text
	}
	most := MaxMessage
	for most > MaxMessage-utf8.UTFMax && !utf8.RuneStart(text[most]) {
		most--
	}
	return strings.Clone(text[:most])
}

// findEntry looks for a name in a raw tree without decoding the other entries.
func findEntry(data []byte, name string) (Entry, bool, error) {
	for len(data) > 0 {
		space := bytes.IndexByte(data, ' ')
		end := bytes.IndexByte(data, 0)
		if space < 1 || end < space+2 || len(data) < end+1+len(Hash{}) {
			return Entry{}, false, errTree
		}
		next := end + 1 + len(Hash{})
		if string(data[space+1:end]) == name {
			found, err := parseTree(data[:next])
			if err != nil {
				return Entry{}, false, err
			}
			return found[0], true, nil
		}
		data = data[next:]
	}
	return Entry{}, false, nil
}

// Commit reads a commit, of a large message the beginning. Errors: *MissingObjectError, *UnusableObjectError,
// *CorruptObjectError.
func (m *Mirror) Commit(h Hash) (CommitInfo, error) {
	data, err := m.store.read(h, want{kind: plumbing.CommitObject, most: MaxCommit, cut: true})
	if err != nil {
		return CommitInfo{}, err
	}
	c, err := ParseCommit(h, data)
	if err != nil && len(data) < MaxCommit {
		return CommitInfo{}, m.store.malformed(obj{h, plumbing.CommitObject, data}, err)
	}
	if err != nil {
		return CommitInfo{}, &UnusableObjectError{Hash: h, Err: err}
	}
	return c, nil
}

// RawCommit reads a commit as git stores it. Errors: those of Commit; *TooLargeError for one of more than MaxCommit
// bytes.
func (m *Mirror) RawCommit(h Hash) ([]byte, error) {
	return m.store.read(h, want{kind: plumbing.CommitObject, most: MaxCommit})
}

// Tree reads the entries of one tree, in git's order. The zero hash and the empty tree have none. Errors:
// *MissingObjectError, *UnusableObjectError, *CorruptObjectError; *TooLargeError for one of more than MaxTree bytes.
func (m *Mirror) Tree(h Hash) ([]Entry, error) {
	data, err := m.rawTree(h)
	if err != nil {
		return nil, err
	}
	entries, err := ParseTree(data)
	if err != nil {
		return nil, m.store.malformed(obj{h, plumbing.TreeObject, data}, err)
	}
	return entries, nil
}

func (m *Mirror) rawTree(h Hash) ([]byte, error) {
	if h.IsZero() || h == emptyTree {
		return nil, nil
	}
	return m.store.read(h, want{kind: plumbing.TreeObject, most: MaxTree})
}

// Needed passes on an error about a tree that a commit of this mirror has. Where the tree is missing the mirror is
// damaged, and the next fetch fills it anew. An error about a tree that was asked for out of the blue does not belong
// here.
func (m *Mirror) Needed(err error) error { return m.store.needed(err) }

// usable are the entries of a tree, for callers that look for something in it: one that can never be read has none.
func (m *Mirror) usable(h Hash) ([]Entry, error) {
	entries, err := m.Tree(h)
	if isUnusable(err) {
		return nil, nil
	}
	return entries, err
}

// Lookup finds a slash-separated path below a root tree; false when there is nothing. It does not follow symbolic
// links, and finds nothing in an object that is not a usable tree. Errors: *MissingObjectError,
// *CorruptObjectError.
func (m *Mirror) Lookup(root Hash, path string) (e Entry, found bool, err error) {
	at := Entry{Mode: ModeDir, Hash: root}
	for name := range strings.SplitSeq(path, "/") {
		if !at.IsDir() {
			return Entry{}, false, nil
		}
		data, err := m.rawTree(at.Hash)
		if err != nil && at.Name != "" {
			err = m.store.needed(err)
		}
		var e Entry
		var found bool
		if err == nil {
			if e, found, err = findEntry(data, name); err != nil {
				err = m.store.malformed(obj{at.Hash, plumbing.TreeObject, data}, err)
			}
		}
		if isUnusable(err) {
			return Entry{}, false, nil
		}
		if err != nil || !found {
			return Entry{}, false, err
		}
		at = e
	}
	return at, true, nil
}

// Blob reads a blob of at most limit bytes. The result must not be written to. A larger blob is a *TooLargeError, told
// from its header. Other errors: *MissingObjectError, which in a partial mirror Bring mends; *UnusableObjectError,
// *CorruptObjectError.
func (m *Mirror) Blob(h Hash, limit int64) ([]byte, error) {
	data, err := m.store.read(h, want{kind: plumbing.BlobObject, most: limit})
	return data, m.store.needed(err)
}

// Visit is called by Diff for one path. An entry with a zero hash means that the path is gone.
type Visit func(path string, e Entry) error

// Diff calls visit for each file, link and submodule that is new or different in tree now against tree old. It also
// calls visit for each that is gone. The calls are in git's order. Equal subtrees are not entered; a zero old means
// everything, and a tree that can never be read has nothing in it. An error of visit ends it and is returned as it
// is, but for fs.SkipAll. Other errors: *MissingObjectError, *CorruptObjectError.
func (m *Mirror) Diff(old, now Hash, visit Visit) error {
	if err := m.diff("", old, now, visit); !errors.Is(err, fs.SkipAll) {
		return err
	}
	return nil
}

func (m *Mirror) diff(prefix string, old, now Hash, visit Visit) error {
	if old == now {
		return nil
	}
	before, err := m.usable(old)
	if err != nil {
		return err
	}
	after, err := m.usable(now)
	if err != nil {
		return err
	}
	for len(before) > 0 || len(after) > 0 {
		was, is := Entry{}, Entry{}
		switch c := compareHeads(before, after); {
		case c < 0:
			was, before = before[0], before[1:]
		case c > 0:
			is, after = after[0], after[1:]
		default:
			was, before = before[0], before[1:]
			is, after = after[0], after[1:]
		}
		if err := m.diffEntry(prefix, was, is, visit); err != nil {
			return err
		}
	}
	return nil
}

// compareHeads orders the first entries of two trees; an empty list comes last.
func compareHeads(a, b []Entry) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return compareEntries(a[0], b[0])
}

// diffEntry compares two entries that have the same place in git's order, so both are directories or
// neither is; either may be zero.
func (m *Mirror) diffEntry(prefix string, was, is Entry, visit Visit) error {
	if was == is {
		return nil
	}
	if was.IsDir() || is.IsDir() {
		return m.store.needed(m.diff(prefix+max(was.Name, is.Name)+"/", was.Hash, is.Hash, visit))
	}
	if is.Hash.IsZero() {
		return visit(prefix+was.Name, Entry{Name: was.Name, Mode: was.Mode})
	}
	return visit(prefix+is.Name, is)
}
