// Package signature tells who signed a commit, of the signers that are trusted. They sign with SSH keys, as
// ssh-keygen's allowed_signers files list them, or with OpenPGP keys.
package signature

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// Signers are those whose signatures are trusted. They do not change once read and are safe for concurrent use.
type Signers struct {
	ssh     []sshSigner
	openPGP openpgp.EntityList
}

// Errors of Verify, for errors.Is.
var (
	// ErrUnsigned says that there is no signature.
	ErrUnsigned = errors.New("the commit is not signed")
	// ErrUntrusted says that there is a signature, of a key that is not trusted, or that does not fit the commit.
	ErrUntrusted = errors.New("no trusted key signed the commit as it is")
)

// namespace is what git's SSH signatures are for.
const namespace = "git"

// Verify says who signed a commit, given as Git stores it: the principals of an SSH key, or the identity of an OpenPGP
// key. Keys with a time are trusted for commits whose committer's date is within, as git verify-commit has it; an
// expired OpenPGP key is not trusted. Errors: ErrUnsigned, ErrUntrusted.
func (s *Signers) Verify(commit []byte) (signer string, err error) {
	payload, armored, err := split(commit)
	switch {
	case err != nil:
		return "", err
	case bytes.HasPrefix(armored, []byte("-----BEGIN SSH SIGNATURE-----")):
		return s.verifySSH(payload, armored)
	case bytes.HasPrefix(armored, []byte("-----BEGIN PGP SIGNATURE-----")):
		return s.verifyOpenPGP(payload, armored)
	}
	return "", fmt.Errorf("%w: the signature is neither of SSH nor of OpenPGP", ErrUntrusted)
}

func (s *Signers) verifySSH(payload, armored []byte) (string, error) {
	sig, err := sshsig.Unarmor(armored)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	at, err := committed(payload)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	for _, one := range s.ssh {
		if !bytes.Equal(one.key.Marshal(), sig.PublicKey.Marshal()) || !one.within(at) {
			continue
		}
		if err := sshsig.Verify(bytes.NewReader(payload), sig, one.key, sig.HashAlgorithm, namespace); err != nil {
			return "", fmt.Errorf("%w: %w", ErrUntrusted, err)
		}
		return one.principals, nil
	}
	return "", fmt.Errorf("%w: no signer is listed with the key %s", ErrUntrusted, ssh.FingerprintSHA256(sig.PublicKey))
}

func (s *Signers) verifyOpenPGP(payload, armored []byte) (string, error) {
	entity, err := openpgp.CheckArmoredDetachedSignature(s.openPGP, bytes.NewReader(payload), bytes.NewReader(armored),
		nil)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	if id := entity.PrimaryIdentity(); id != nil {
		return id.Name, nil
	}
	return fmt.Sprintf("%X", entity.PrimaryKey.Fingerprint), nil
}

// split gives what was signed of a commit, which is the commit without its signature, and the signature.
func split(commit []byte) (payload, signature []byte, err error) {
	head, message := commit, []byte(nil)
	if end := bytes.Index(commit, []byte("\n\n")); end >= 0 {
		head, message = commit[:end+1], commit[end+1:]
	}
	var other []byte // a signature for the commit's name by another hash, gpgsig-sha256, is not part of what is signed
	to := &payload
	for line := range bytes.Lines(head) {
		value, signs := bytes.CutPrefix(line, []byte("gpgsig "))
		switch {
		case line[0] == ' ' && to != &payload:
			line = line[1:]
		case line[0] == ' ':
		case signs && len(signature) > 0:
			return nil, nil, fmt.Errorf("%w: it has two signatures", ErrUntrusted)
		case signs:
			to, line = &signature, value
		case bytes.HasPrefix(line, []byte("gpgsig")):
			to = &other
		default:
			to = &payload
		}
		*to = append(*to, line...)
	}
	if len(signature) == 0 {
		return nil, nil, ErrUnsigned
	}
	return append(payload, message...), signature, nil
}

// committed is when a commit was made, as it claims.
func committed(payload []byte) (time.Time, error) {
	for line := range bytes.Lines(payload) {
		who, ok := bytes.CutPrefix(line, []byte("committer "))
		if !ok {
			continue
		}
		var seconds int64
		if _, err := fmt.Sscanf(string(who[bytes.LastIndexByte(who, '>')+1:]), "%d", &seconds); err != nil {
			return time.Time{}, fmt.Errorf("read the committer's date: %w", err)
		}
		return time.Unix(seconds, 0), nil
	}
	return time.Time{}, errors.New("it has no committer")
}
