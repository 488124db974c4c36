package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
)

// ControllerJSON is the template as the in-cluster controller encodes it to tell templates apart. That is the JSON
// of Kubernetes' own type, with the defaults that the controller's custom resource definition fills in. The two
// hashes on pods, and the controller's build IDs, are made from it. Nil: the template is not a pod template.
func (t PodTemplate) ControllerJSON() []byte {
	var template corev1.PodTemplateSpec
	if err := json.Unmarshal(t.Raw, &template); err != nil {
		return nil
	}
	setDefinitionDefaults(&template.Spec)
	data, err := json.Marshal(template)
	if err != nil {
		return nil
	}
	return data
}

// ControllerHash is what the in-cluster controller writes into the annotation temporal.io/pod-template-spec-hash:
// SHA-256, in hex, of ControllerJSON. Pods carry it so that the controller can take them over without a restart.
// Nothing here depends on it, so a library that encodes another way changes no decision.
func (t PodTemplate) ControllerHash() string {
	sum := sha256.Sum256(t.ControllerJSON())
	return hex.EncodeToString(sum[:])
}

// ControllerHash is what the in-cluster controller writes into the annotation temporal.io/connection-spec-hash. It is
// the SHA-256, in hex, of the address, the server name and the Secret's name, joined bare. Two connections can share
// one: Hash tells them apart.
func (c ConnectionSpec) ControllerHash() string {
	text := c.HostPort
	if c.TLS != nil {
		text += c.TLS.ServerName
	}
	switch c.Auth() {
	case AuthMutualTLS:
		text += c.MutualTLSSecretRef.Name
	case AuthAPIKey:
		text += c.APIKeySecretRef.Name
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// setDefinitionDefaults fills in what the schema of a pod template in a custom resource definition has defaults for.
// Those of old kinds of volumes are left out: a template with one restarts once when the controller takes it over.
func setDefinitionDefaults(pod *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			c := &containers[i]
			setContainerDefaults(c.Ports, c.Env)
			for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
				if probe != nil && probe.GRPC != nil && probe.GRPC.Service == nil {
					probe.GRPC.Service = new(string)
				}
			}
		}
	}
}

func setContainerDefaults(ports []corev1.ContainerPort, env []corev1.EnvVar) {
	for i := range ports {
		if ports[i].Protocol == "" {
			ports[i].Protocol = corev1.ProtocolTCP
		}
	}
	for i := range env {
		if from := env[i].ValueFrom; from != nil && from.FileKeyRef != nil && from.FileKeyRef.Optional == nil {
			from.FileKeyRef.Optional = new(bool)
		}
	}
}
