package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

const (
	// shortest is how many bytes a secret has at least.
	shortest = 16
	// mostSecrets is how many there may be: each delivery is hashed with all of them.
	mostSecrets = 8
	// signingPrefix is what the keys of Standard Webhooks begin with.
	signingPrefix = "whsec_"
)

// secret is one of those that prove a delivery.
type secret struct {
	text []byte
	// key is that of Standard Webhooks; nil: the secret has no such key.
	key []byte
}

// parseSecrets reads secrets, one a line. Empty lines do not count. No error repeats any of a secret.
func parseSecrets(text string) ([]secret, error) {
	var out []secret
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if len(line) < shortest {
			return nil, fmt.Errorf("the webhook secret in line %d has %d characters, and %d are the least: make one "+
				"with openssl rand -hex 32",
				n+1, len(line), shortest)
		}
		s := secret{text: []byte(line)}
		if encoded, ok := strings.CutPrefix(line, signingPrefix); ok {
			key, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil {
				return nil, fmt.Errorf("the webhook secret in line %d begins with %s, and is not base64 behind it: "+
					"copy GitLab's signing token whole",
					n+1, signingPrefix)
			}
			s.key = key
		}
		if out = append(out, s); len(out) > mostSecrets {
			return nil, fmt.Errorf("there are more than %d webhook secrets: take out those that no forge uses any more",
				mostSecrets)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("there is no webhook secret: write one in a line, made with openssl rand -hex 32")
	}
	return out, nil
}
