package signature

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"golang.org/x/crypto/ssh"
)

// sshSigner is a line of an allowed_signers file.
type sshSigner struct {
	principals string
	key        ssh.PublicKey
	// after and before bound when its signatures are trusted; zero: they do not.
	after, before time.Time
}

func (s sshSigner) within(t time.Time) bool {
	return !t.Before(s.after) && (s.before.IsZero() || t.Before(s.before))
}

// Load reads files with signers that are trusted. Each is an allowed_signers file as ssh-keygen and git have it
// (gpg.ssh.allowedSignersFile), or OpenPGP public keys in ASCII armour (gpg --export --armor). Errors name the file and
// the line.
func Load(paths ...string) (*Signers, error) {
	all := &Signers{}
	for _, name := range paths {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read signers: %w", err)
		}
		if err := all.add(content); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}

// errNobody says that a file has no signers, which would be a mistake.
var errNobody = errors.New("it has no signers: expected lines such as 'ada@example.com ssh-ed25519 AAAA…', or an " +
	"OpenPGP public key block")

func (s *Signers) add(content []byte) error {
	if bytes.Contains(content, []byte("-----BEGIN PGP")) {
		return s.addOpenPGP(content)
	}
	before := len(s.ssh)
	number := 0
	for line := range strings.Lines(string(content)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		one, listed, err := parseLine(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if listed {
			s.ssh = append(s.ssh, one)
		}
	}
	if len(s.ssh) == before {
		return errNobody
	}
	return nil
}

func (s *Signers) addOpenPGP(content []byte) error {
	const end = "-----END PGP PUBLIC KEY BLOCK-----"
	for rest := content; ; {
		begin := bytes.Index(rest, []byte("-----BEGIN PGP"))
		if begin < 0 {
			return nil
		}
		entities, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(rest[begin:]))
		if err != nil {
			return fmt.Errorf("read OpenPGP public keys: %w", err)
		}
		for _, e := range entities {
			if e.PrivateKey != nil {
				return errors.New("it has a private OpenPGP key: expected public keys alone (gpg --export --armor)")
			}
		}
		s.openPGP = append(s.openPGP, entities...)
		at := bytes.Index(rest[begin:], []byte(end))
		if at < 0 {
			return fmt.Errorf("read OpenPGP public keys: no %s", end)
		}
		rest = rest[begin+at+len(end):]
	}
}

// parseLine reads principals, options, and a key. Keys for something else than git are left out.
func parseLine(line string) (one sshSigner, listed bool, err error) {
	principals, rest, ok := cutPrincipals(line)
	if !ok {
		return one, false, errors.New("expected principals, a key type and a key, such as 'ada@example.com " +
			"ssh-ed25519 AAAA…'")
	}
	key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(rest))
	if err != nil {
		return one, false, fmt.Errorf("read the key of %s: expected options, a key type and a key: %w", principals, err)
	}
	one = sshSigner{principals: principals, key: key}
	listed = true
	for _, o := range options {
		name, value, _ := strings.Cut(o, "=")
		value = strings.Trim(value, `"`)
		switch strings.ToLower(name) {
		case "namespaces":
			listed = matches(value)
		case "valid-after":
			one.after, err = parseTime(value)
		case "valid-before":
			one.before, err = parseTime(value)
		default:
			err = fmt.Errorf("option %q of %s is not known: expected namespaces, valid-after, valid-before; "+
				"certificates are not supported", name, principals)
		}
		if err != nil {
			return one, false, err
		}
	}
	return one, listed, nil
}

func cutPrincipals(line string) (principals, rest string, ok bool) {
	if quoted, found := strings.CutPrefix(line, `"`); found {
		principals, rest, ok = strings.Cut(quoted, `"`)
		return principals, strings.TrimSpace(rest), ok
	}
	at := strings.IndexAny(line, " \t")
	if at < 0 {
		return "", "", false
	}
	return line[:at], strings.TrimSpace(line[at:]), true
}

// matches reports whether a list of patterns has git's namespace, and none with a ! before it does.
func matches(list string) bool {
	found := false
	for p := range strings.SplitSeq(list, ",") {
		p, not := strings.CutPrefix(p, "!")
		if ok, err := path.Match(p, namespace); err == nil && ok {
			if not {
				return false
			}
			found = true
		}
	}
	return found
}

// parseTime reads a time as ssh-keygen writes it: YYYYMMDD[HHMM[SS]], Z for UTC, else local.
func parseTime(text string) (time.Time, error) {
	digits, utc := strings.CutSuffix(text, "Z")
	zone := time.Local
	if utc {
		zone = time.UTC
	}
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if len(layout) == len(digits) {
			t, err := time.ParseInLocation(layout, digits, zone)
			if err == nil {
				return t, nil
			}
		}
	}
	return time.Time{}, fmt.Errorf("time %q: expected YYYYMMDD, YYYYMMDDHHMM or YYYYMMDDHHMMSS, with Z for UTC", text)
}
