package bundle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/stretchr/testify/require"
)

func TestSignatures(t *testing.T) {
	secret := signer{private: strings.Repeat("s", 32), public: strings.Repeat("s", 32), algorithm: algorithmSecret}
	ours, curve, theirs := rsaSigner(t), curveSigner(t), rsaSigner(t)
	modules := map[string]string{"/org.rego": rule("no")}
	for name, c := range map[string]struct {
		keys  []Key
		scope string
		made  made
		// want is the error, "" for none.
		want string
	}{
		"RSA":            {keys: []Key{ours.key(t, "")}, made: made{by: &ours}},
		"a curve":        {keys: []Key{curve.key(t, "")}, made: made{by: &curve}},
		"a secret":       {keys: []Key{secret.key(t, "")}, made: made{by: &secret}},
		"by its ID":      {keys: []Key{ours.key(t, "2025"), curve.key(t, "2026")}, made: made{by: &curve, keyID: "2026"}},
		"scope":          {keys: []Key{ours.key(t, "")}, scope: "prod", made: made{by: &ours, scope: "prod"}},
		"none":           {keys: []Key{ours.key(t, "")}, want: "missing .signatures.json"},
		"another's":      {keys: []Key{ours.key(t, "")}, made: made{by: &theirs}, want: "failed to verify JWT signature"},
		"unknown ID":     {keys: []Key{ours.key(t, "2025"), curve.key(t, "2026")}, made: made{by: &theirs, keyID: "2027"}, want: "2027 not found"},
		"another's ID":   {keys: []Key{ours.key(t, "2025"), curve.key(t, "2026")}, made: made{by: &theirs, keyID: "2025"}, want: "failed to verify"},
		"another scope":  {keys: []Key{ours.key(t, "")}, scope: "prod", made: made{by: &ours, scope: "dev"}, want: "scope mismatch"},
		"no scope":       {keys: []Key{ours.key(t, "")}, scope: "prod", made: made{by: &ours}, want: "scope mismatch"},
		"unwanted scope": {keys: []Key{ours.key(t, "")}, made: made{by: &ours, scope: "dev"}, want: "scope mismatch"},
		// The public key is known to everybody: as a secret it proves nothing.
		"public key as secret": {keys: []Key{ours.key(t, "")}, want: "failed to verify",
			made: made{by: &signer{private: ours.public, algorithm: algorithmSecret}}},
		"changed": {keys: []Key{ours.key(t, "")}, want: "digest mismatch",
			made: made{by: &ours, after: func(b *bundle.Bundle) { b.Modules[0].Raw = []byte(rule("yes")) }}},
		"added": {keys: []Key{ours.key(t, "")}, want: "not included in bundle signature",
			made: made{by: &ours, after: func(b *bundle.Bundle) {
				more := b.Modules[0]
				more.Path, more.URL = "/more.rego", "/more.rego"
				b.Modules = append(b.Modules, more)
			}}},
		"taken away": {keys: []Key{ours.key(t, "")}, want: "not found in the target bundle",
			made: made{by: &ours, after: func(b *bundle.Bundle) { b.Modules = nil }}},
		"other data": {keys: []Key{ours.key(t, "")}, want: "digest mismatch",
			made: made{by: &ours, after: func(b *bundle.Bundle) { b.Data = map[string]any{"acme": 1} }}},
	} {
		t.Run(name, func(t *testing.T) {
			c.made.modules = modules
			require.NoError(t, checkKeys(c.keys))
			_, err := reading{"org", verification(c.keys, c.scope)}.read(c.made.archive(t))
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestKeysThatCannotVerifyAreRefused(t *testing.T) {
	ours, curve := rsaSigner(t), curveSigner(t)
	for name, c := range map[string]struct{ text, algorithm, want string }{
		"private":             {ours.private, "", "private key: keep that where bundles are signed"},
		"secret, not said":    {strings.Repeat("s", 32), "", "say that the algorithm is HS256"},
		"short secret":        {"secret", "HS256", "at least 32 bytes, this one has 6"},
		"public key as it":    {ours.public, "HS256", "anybody could sign"},
		"unknown":             {ours.public, "none", `algorithm "none": want one of`},
		"curve for RSA":       {curve.public, "RS256", "not for RS256; it could be for ES256"},
		"RSA for curve":       {ours.public, "ES256", "not for ES256; it could be for PS256, RS256"},
		"something else":      {"-----BEGIN PKCS7-----\nAAAA\n-----END PKCS7-----\n", "", "a PKCS7 is not a public key"},
		"damaged":             {"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "", "asn1"},
		"damaged certificate": {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "", "x509"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "key")
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
			_, err := ReadKey(KeyFile{Path: file, Algorithm: c.algorithm})
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, file)
		})
	}
	require.ErrorContains(t, checkKeys([]Key{ours.key(t, "a"), curve.key(t, "")}), "each needs an ID")
	require.ErrorContains(t, checkKeys([]Key{ours.key(t, "a"), curve.key(t, "a")}), `have the ID "a"`)
}
