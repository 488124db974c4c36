package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// OwnedEnv are the environment variables that Rampart gives to the containers of a version, sorted. A spec must not set
// them.
func OwnedEnv() []string {
	return []string{
		"TEMPORAL_ADDRESS",
		"TEMPORAL_API_KEY",
		"TEMPORAL_DEPLOYMENT_NAME",
		"TEMPORAL_NAMESPACE",
		"TEMPORAL_TLS",
		"TEMPORAL_TLS_CLIENT_CERT_PATH",
		"TEMPORAL_TLS_CLIENT_KEY_PATH",
		"TEMPORAL_TLS_SERVER_NAME",
		"TEMPORAL_WORKER_BUILD_ID",
	}
}

// LegacyEnv are the names that the same values had in earlier eras, sorted. Rampart gives them only in an environment
// with workerEnv: WithLegacyNames; so a spec that sets one gets a warning.
func LegacyEnv() []string {
	return []string{
		"TEMPORAL_HOST_PORT",
		"TEMPORAL_TLS_CERT_PATH",
		"TEMPORAL_TLS_KEY_PATH",
		"WORKER_BUILD_ID",
	}
}

// The volumes of the client certificate, and of the certificates to trust, where a connection has them.
const (
	TLSVolume    = "temporal-tls"
	TLSMountPath = "/etc/temporal/tls"
	CAVolume     = "temporal-server-ca"
	CAMountPath  = "/etc/temporal/server-ca"
)

// CAPathEnv is the variable that leads to the certificates to trust. A spec may set it: its own value counts.
const CAPathEnv = "TEMPORAL_TLS_SERVER_CA_CERT_PATH"

// set fills a template from its nodes.
func (t *PodTemplate) set(n *node) {
	t.Raw = n.json()
	t.FirstImage = strings.Clone(n.at("spec", "containers").item(0).get("image").str())
}

// MarshalJSON writes the template as the user wrote it.
func (t PodTemplate) MarshalJSON() ([]byte, error) {
	if len(t.Raw) == 0 {
		return []byte("null"), nil
	}
	return t.Raw, nil
}

// UnmarshalJSON reads any template and brings it into canonical form. It does not check it, as Decode does.
func (t *PodTemplate) UnmarshalJSON(data []byte) error {
	*t = PodTemplate{}
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	raw, err := CanonicalJSON(data)
	if err != nil {
		return fmt.Errorf("read pod template: %w", err)
	}
	var part struct {
		Spec struct {
			Containers []struct {
				Image string `json:"image"`
			} `json:"containers"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &part); err != nil {
		return fmt.Errorf("read pod template: %w", err)
	}
	t.Raw = raw
	if containers := part.Spec.Containers; len(containers) > 0 {
		t.FirstImage = containers[0].Image
	}
	return nil
}

func isOwnedEnv(name string) bool  { return slices.Contains(OwnedEnv(), name) }
func isLegacyEnv(name string) bool { return slices.Contains(LegacyEnv(), name) }
