package bundle

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/bundle"
)

// Key verifies signatures.
type Key struct {
	// ID that signatures name it by; "" for the only key, which all signatures are verified with.
	ID        string
	algorithm string
	text      string
}

// algorithmSecret is the algorithm of a shared secret. It has to be asked for, so that a public key is never taken for
// a secret.
const algorithmSecret = "HS256"

// Algorithms that a key may be for.
func Algorithms() []string {
	return []string{"ES256", "ES384", "ES512", algorithmSecret, "PS256", "RS256", "RS384", "RS512"}
}

// publicAlgorithms are those of public keys.
func publicAlgorithms() []string {
	return slices.DeleteFunc(Algorithms(), func(a string) bool { return a == algorithmSecret })
}

// minSecret is the size in bytes of a shared secret: that of the hash (RFC 7518, section 3.2).
const minSecret = 32

// KeyFile is where a key is.
type KeyFile struct {
	ID, Path string
	// Algorithm is one of Algorithms; "": RS256 for an RSA key, ES256, ES384 or ES512 for one on a curve.
	Algorithm string
}

// ReadKey reads a public key or a certificate in PEM, or, for HS256, a secret of 32 bytes or more, byte for byte.
func ReadKey(f KeyFile) (Key, error) {
	text, err := os.ReadFile(f.Path)
	if err != nil {
		return Key{}, fmt.Errorf("read key of policy bundles: %w", err)
	}
	algorithm, err := algorithmFor(f.Algorithm, text)
	if err != nil {
		return Key{}, fmt.Errorf("key of policy bundles %s: %w", f.Path, err)
	}
	return Key{ID: f.ID, algorithm: algorithm, text: string(text)}, nil
}

func algorithmFor(algorithm string, text []byte) (string, error) {
	if algorithm != "" && !slices.Contains(Algorithms(), algorithm) {
		return "", fmt.Errorf("algorithm %q: want one of %s", algorithm, strings.Join(Algorithms(), ", "))
	}
	block, _ := pem.Decode(text)
	switch {
	case algorithm == algorithmSecret && block != nil:
		return "", errors.New("it is PEM, not a shared secret: with a public key as secret anybody could sign")
	case algorithm == algorithmSecret && len(text) < minSecret:
		return "", fmt.Errorf("a shared secret has at least %d bytes, this one has %d", minSecret, len(text))
	case algorithm == algorithmSecret:
		return algorithm, nil
	case block == nil:
		return "", fmt.Errorf("it holds no public key in PEM; for a shared secret say that the algorithm is %s",
			algorithmSecret)
	}
	public, err := publicKey(block)
	if err != nil {
		return "", err
	}
	fits, standard := fitting(public)
	if len(fits) == 0 {
		return "", fmt.Errorf("a %T fits no supported algorithm: want an RSA key, or one on the curve P-256, P-384 or "+
			"P-521, for one of %s", public, strings.Join(publicAlgorithms(), ", "))
	}
	if algorithm == "" {
		algorithm = standard
	}
	if !slices.Contains(fits, algorithm) {
		return "", fmt.Errorf("the key is not for %s; it could be for %s", algorithm, strings.Join(fits, ", "))
	}
	return algorithm, nil
}

func publicKey(block *pem.Block) (any, error) {
	switch block.Type {
	case "PUBLIC KEY":
		return x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		return x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return cert.PublicKey, nil
	}
	if strings.Contains(block.Type, "PRIVATE") {
		return nil, errors.New("it is a private key: keep that where bundles are signed, and give the public one")
	}
	return nil, fmt.Errorf("a %s is not a public key", block.Type)
}

// fitting are the algorithms that a key can be for, and the one that is meant unless said otherwise.
func fitting(public any) (all []string, standard string) {
	switch k := public.(type) {
	case *rsa.PublicKey:
		return []string{"PS256", "RS256", "RS384", "RS512"}, "RS256"
	case *ecdsa.PublicKey:
		if name, ok := map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}[k.Curve.Params().BitSize]; ok {
			return []string{name}, name
		}
	}
	return nil, ""
}

// anyKey is the ID of a key without one.
const anyKey = "default"

// checkKeys refuses keys that could not be told apart.
func checkKeys(keys []Key) error {
	var ids []string
	for _, k := range keys {
		if k.ID == "" && len(keys) > 1 {
			return errors.New("of several keys for policy bundles each needs an ID, by which a signature names it")
		}
		if slices.Contains(ids, k.ID) {
			return fmt.Errorf("two keys for policy bundles have the ID %q", k.ID)
		}
		ids = append(ids, k.ID)
	}
	return nil
}

// verification is what OPA verifies a bundle by; nil: bundles need not be signed.
func verification(keys []Key, scope string) *bundle.VerificationConfig {
	if len(keys) == 0 {
		return nil
	}
	known, use := map[string]*bundle.KeyConfig{}, ""
	for _, k := range keys {
		id := k.ID
		if id == "" {
			id, use = anyKey, anyKey
		}
		known[id] = &bundle.KeyConfig{Key: k.text, Algorithm: k.algorithm}
	}
	return bundle.NewVerificationConfig(known, use, scope, nil)
}
