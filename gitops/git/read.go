package git

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
)

// Bounds of what is read of one object, in bytes. The object of a folder with some hundred thousand files in it is
// smaller than MaxTree; a commit whose message is larger than MaxMessage is known by the message's beginning, and its
// header has to be within MaxCommit.
const (
	MaxTree    = 32 << 20
	MaxCommit  = 1 << 20
	MaxMessage = 64 << 10
)

// want is what is read of an object.
type want struct {
	kind plumbing.ObjectType
	// most is how many bytes: of a larger one nothing is read, or its beginning if cut is set.
	most int64
	cut  bool
}

// of gives what is wanted of an object that is there.
func (w want) of(o obj) ([]byte, error) {
	switch size := int64(len(o.data)); {
	case o.kind != w.kind:
		return nil, &UnusableObjectError{Hash: o.hash, Err: otherKind(o.kind, w.kind)}
	case size <= w.most:
		return o.data, nil
	case w.cut:
		return o.data[:w.most], nil
	default:
		return nil, &TooLargeError{Hash: o.hash, Size: size, Limit: w.most}
	}
}

func otherKind(is, wanted plumbing.ObjectType) error {
	return fmt.Errorf("expected a %s, found a %s", wanted, is)
}

// read reads an object, or its beginning. Errors: *MissingObjectError, *UnusableObjectError, *CorruptObjectError,
// *TooLargeError.
func (s *store) read(h Hash, w want) ([]byte, error) {
	s.mu.Lock()
	o, ok := s.fresh[h]
	filled := s.filled
	s.mu.Unlock()
	if ok {
		return w.of(o)
	}
	data, err := s.readPacked(h, w)
	if damage, ok := errors.AsType[*damageError](err); ok {
		if s.timesEmptied() != filled { // what was read is gone, and what took its place is not damaged
			return nil, fmt.Errorf("read object %s of a mirror that was emptied: %w", h, damage.cause)
		}
		return nil, s.damaged(h, damage.cause)
	}
	if missing, ok := errors.AsType[*MissingObjectError](err); ok {
		missing.filled = filled
	}
	return data, err
}

// timesEmptied is how often the store was emptied.
func (s *store) timesEmptied() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.filled
}

// readPacked reads an object that is on disk. Errors: *damageError where the disk is not as it should be.
func (s *store) readPacked(h Hash, w want) (data []byte, err error) {
	err = s.packs.use(func(on openPacks) error {
		o, err := on.object(h)
		switch {
		case errors.Is(err, plumbing.ErrObjectNotFound):
			return &MissingObjectError{Hash: h, kind: w.kind}
		case err != nil:
			return err
		case o.Type() != w.kind:
			return unlessDamaged(o, h, otherKind(o.Type(), w.kind))
		case o.Size() > w.most && !w.cut: // go-git does not inflate a large object before it is read
			return &TooLargeError{Hash: h, Size: o.Size(), Limit: w.most}
		}
		if data, err = beginning(o, min(o.Size(), w.most)); err != nil {
			return &damageError{err}
		}
		return nil
	})
	return data, err
}

// damageError is an error of the disk, or of what is on it.
type damageError struct{ cause error }

func (e *damageError) Error() string { return e.cause.Error() }

func content(o plumbing.EncodedObject) ([]byte, error) { return beginning(o, o.Size()) }

// beginning reads the first bytes of an object.
func beginning(o plumbing.EncodedObject, size int64) ([]byte, error) {
	r, err := o.Reader()
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	_, err = io.ReadFull(r, data)
	return data, errors.Join(err, r.Close())
}

// unlessDamaged says that an object cannot be used: one that has its name by its content is what the repository holds.
func unlessDamaged(o plumbing.EncodedObject, h Hash, why error) error {
	r, err := o.Reader()
	if err != nil {
		return &damageError{err}
	}
	sum := plumbing.NewHasher(o.Type(), o.Size())
	_, err = io.Copy(sum, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return &damageError{err}
	}
	if sum.Sum() != h {
		return &damageError{why}
	}
	return &UnusableObjectError{Hash: h, Err: why}
}

// malformed says that an object cannot be decoded, and notes that the mirror is damaged if it is not what it was.
func (s *store) malformed(o obj, why error) error {
	if plumbing.ComputeHash(o.kind, o.data) == o.hash {
		return &UnusableObjectError{Hash: o.hash, Err: why}
	}
	return s.damaged(o.hash, why)
}

// isUnusable says whether an object is there and can never be used: a search in it finds nothing.
func isUnusable(err error) bool {
	var (
		unusable *UnusableObjectError
		large    *TooLargeError
	)
	return errors.As(err, &unusable) || errors.As(err, &large)
}

// damaged notes that the mirror cannot be trusted any more and wraps the cause.
func (s *store) damaged(h Hash, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bad = &CorruptObjectError{Hash: h, Err: err}
	return s.bad
}

// needed passes an error on, noting when what is missing or not what it should be belongs to something that is
// there. An object that a caller asks for out of the blue does not show damage, and neither does one that was left
// on the server, or that was looked for before the mirror was emptied.
func (s *store) needed(err error) error {
	var (
		missing *MissingObjectError
		corrupt *CorruptObjectError
	)
	if err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.As(err, &missing):
		if missing.filled == s.filled && (!s.partial || missing.kind != plumbing.BlobObject) {
			s.bad = err
		}
	case errors.As(err, &corrupt):
		s.bad = err
	}
	return err
}
