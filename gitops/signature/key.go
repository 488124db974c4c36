package signature

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// Key signs commits. It is safe for concurrent use.
type Key struct {
	ssh     ssh.Signer
	openPGP *openpgp.Entity
}

// Errors of LoadKey about a passphrase, for errors.Is.
var (
	// ErrPassphraseNeeded says that a key is encrypted and that there is no passphrase.
	ErrPassphraseNeeded = errors.New("the key is encrypted and needs a passphrase")
	// ErrWrongPassphrase says that it does not fit.
	ErrWrongPassphrase = errors.New("the passphrase does not fit the key")
)

// LoadKey reads a private key: an SSH key as ssh-keygen writes it, or one OpenPGP key in ASCII armour (gpg
// --export-secret-keys --armor). passphrase "" means that there is none. Errors name the file.
func LoadKey(name, passphrase string) (*Key, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read signing key: %w", err)
	}
	read := readSSHKey
	if bytes.Contains(content, []byte("-----BEGIN PGP")) {
		read = readOpenPGPKey
	}
	key, err := read(content, []byte(passphrase))
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", name, err)
	}
	return key, nil
}

func readSSHKey(content, passphrase []byte) (*Key, error) {
	signer, err := ssh.ParsePrivateKey(content)
	if _, ok := errors.AsType[*ssh.PassphraseMissingError](err); ok {
		if len(passphrase) == 0 {
			return nil, ErrPassphraseNeeded
		}
		if signer, err = ssh.ParsePrivateKeyWithPassphrase(content, passphrase); err != nil {
			return nil, ErrWrongPassphrase
		}
	}
	if err != nil {
		return nil, fmt.Errorf("expected a private key of SSH, or of OpenPGP in ASCII armour: %w", err)
	}
	return &Key{ssh: signer}, nil
}

func readOpenPGPKey(content, passphrase []byte) (*Key, error) {
	entities, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("read OpenPGP key: %w", err)
	}
	if len(entities) != 1 || entities[0].PrivateKey == nil {
		return nil, fmt.Errorf("expected one private OpenPGP key (gpg --export-secret-keys --armor KEY), not %d keys",
			len(entities))
	}
	e := entities[0]
	encrypted := e.PrivateKey.Encrypted
	for i := range e.Subkeys {
		if k := e.Subkeys[i].PrivateKey; k != nil {
			encrypted = encrypted || k.Encrypted
		}
	}
	if encrypted {
		if len(passphrase) == 0 {
			return nil, ErrPassphraseNeeded
		}
		if err := e.DecryptPrivateKeys(passphrase); err != nil {
			return nil, ErrWrongPassphrase
		}
	}
	key := &Key{openPGP: e}
	if _, err := key.Sign([]byte("can it sign")); err != nil {
		return nil, err
	}
	return key, nil
}

// Sign gives the signature of a commit, armoured, as it goes into the commit's header gpgsig. payload is the commit
// without it.
func (k *Key) Sign(payload []byte) ([]byte, error) {
	if k.openPGP == nil {
		sig, err := sshsig.Sign(bytes.NewReader(payload), k.ssh, sshsig.HashSHA512, namespace)
		if err != nil {
			return nil, fmt.Errorf("sign: %w", err)
		}
		return sshsig.Armor(sig), nil
	}
	var out bytes.Buffer
	if err := openpgp.ArmoredDetachSign(&out, k.openPGP, bytes.NewReader(payload), nil); err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return append(out.Bytes(), '\n'), nil
}
