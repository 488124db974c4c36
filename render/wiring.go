package render

import (
	"fmt"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// The environment variables of pods, which the SDKs' environment configuration reads; those after the blank line are
// the names that the same values had in earlier eras. An API key gets no TEMPORAL_TLS beside it: with a key the SDKs use
// TLS unless told otherwise, and the in-cluster controller sets none.
const (
	envAddress    = "TEMPORAL_ADDRESS"
	envNamespace  = "TEMPORAL_NAMESPACE"
	envDeployment = "TEMPORAL_DEPLOYMENT_NAME"
	envBuildID    = "TEMPORAL_WORKER_BUILD_ID"
	envServerName = "TEMPORAL_TLS_SERVER_NAME"
	envTLS        = "TEMPORAL_TLS"
	envKeyPath    = "TEMPORAL_TLS_CLIENT_KEY_PATH"
	envCertPath   = "TEMPORAL_TLS_CLIENT_CERT_PATH"
	envAPIKey     = "TEMPORAL_API_KEY"

	envOldAddress  = "TEMPORAL_HOST_PORT"
	envOldBuildID  = "WORKER_BUILD_ID"
	envOldKeyPath  = "TEMPORAL_TLS_KEY_PATH"
	envOldCertPath = "TEMPORAL_TLS_CERT_PATH"
)

const (
	tlsKey  = v1alpha1.TLSMountPath + "/tls.key"
	tlsCert = v1alpha1.TLSMountPath + "/tls.crt"
)

// wiring is what ties pods to Temporal: variables in each container, and the certificate's volume.
type wiring struct {
	connection v1alpha1.ConnectionSpec
	// namespace in Temporal; deployment is the worker deployment's name there.
	namespace, deployment, buildID string
	names                          v1alpha1.WorkerEnv
}

// block gives the variables in their order. What names the version is taken from kept where it is there: a connection
// cannot change it.
func (w wiring) block(kept map[string]any, names v1alpha1.WorkerEnv) []any {
	identity := func(name, value string) any {
		if v, ok := kept[name]; ok {
			return v
		}
		return variable(name, value)
	}
	block := []any{
		variable(envAddress, w.connection.HostPort),
		identity(envNamespace, w.namespace),
		identity(envDeployment, w.deployment),
		identity(envBuildID, w.buildID),
	}
	if tls := w.connection.TLS; tls != nil && tls.ServerName != "" {
		block = append(block, variable(envServerName, tls.ServerName))
	}
	auth := w.connection.Auth()
	switch auth {
	case v1alpha1.AuthMutualTLS:
		block = append(block, variable(envTLS, "true"), variable(envKeyPath, tlsKey), variable(envCertPath, tlsCert))
	case v1alpha1.AuthAPIKey:
		block = append(block, secretVariable(envAPIKey, w.connection))
	}
	if names != v1alpha1.EnvWithLegacyNames {
		return block
	}
	block = append(block, variable(envOldAddress, w.connection.HostPort), identity(envOldBuildID, w.buildID))
	if auth == v1alpha1.AuthMutualTLS {
		block = append(block, variable(envOldKeyPath, tlsKey), variable(envOldCertPath, tlsCert))
	}
	return block
}

func variable(name, value string) map[string]any {
	return map[string]any{"name": name, "value": value}
}

func secretVariable(name string, c v1alpha1.ConnectionSpec) map[string]any {
	ref := map[string]any{"name": c.APIKeySecretRef.Name, "key": c.APIKeySecretRef.Key}
	if o := c.APIKeySecretRef.Optional; o != nil && *o {
		ref["optional"] = true
	}
	return map[string]any{"name": name, "valueFrom": map[string]any{"secretKeyRef": ref}}
}

// wire ties the pods of a template that the user wrote to Temporal. Init and ephemeral containers are left alone.
func (w wiring) wire(template map[string]any) error {
	return w.apply(template, func([]any) int { return -1 })
}

// rewire brings a rendered template to another connection, whatever it had before: what the old one demanded goes, what
// the new one demands comes, and everything else stays.
func (w wiring) rewire(template map[string]any) error {
	return w.apply(template, blockStart)
}

func (w wiring) apply(template map[string]any, start func(env []any) int) error {
	meta, err := objectIn(template, "metadata")
	if err != nil {
		return err
	}
	annotations, err := objectIn(meta, "annotations")
	if err != nil {
		return err
	}
	annotations[rollout.AnnotationConnectionHash] = w.connection.Hash()
	pod, err := objectAt(template, "spec")
	if err != nil {
		return err
	}
	containers, err := listIn(pod, "containers")
	if err != nil {
		return err
	}
	hadTLS := false
	for i, c := range containers {
		container, ok := c.(map[string]any)
		if !ok {
			return fmt.Errorf("containers[%d] is not an object", i)
		}
		had, err := w.container(container, start)
		if err != nil {
			return fmt.Errorf("containers[%d]: %w", i, err)
		}
		hadTLS = hadTLS || had
	}
	return w.volume(pod, hadTLS)
}

// container puts the block and the certificate's mount into a container. It reports whether there was a block that used
// a certificate.
func (w wiring) container(container map[string]any, start func(env []any) int) (hadTLS bool, err error) {
	env, err := listIn(container, "env")
	if err != nil {
		return false, err
	}
	names, kept, before, after := w.names, map[string]any(nil), env, []any(nil)
	if at := start(env); at >= 0 {
		before = env[:at]
		kept, after = splitBlock(env[at:])
		hadTLS = kept[envCertPath] != nil || kept[envOldCertPath] != nil
		names = v1alpha1.EnvCurrent
		if kept[envOldAddress] != nil || kept[envOldBuildID] != nil {
			names = v1alpha1.EnvWithLegacyNames
		}
	}
	container["env"] = slices.Concat(before, w.block(kept, names), after)

	mounts, err := listIn(container, "volumeMounts")
	if err != nil {
		return false, err
	}
	if hadTLS {
		mounts = without(mounts, func(m map[string]any) bool {
			return m["name"] == v1alpha1.TLSVolume && m["mountPath"] == v1alpha1.TLSMountPath
		})
	}
	if w.connection.Auth() == v1alpha1.AuthMutualTLS {
		mount := map[string]any{"name": v1alpha1.TLSVolume, "mountPath": v1alpha1.TLSMountPath}
		mounts = append(slices.Clip(mounts), mount)
	}
	setList(container, "volumeMounts", mounts)
	return hadTLS, nil
}

// volume puts the certificate's volume into the pod, or takes it away where it was ours.
func (w wiring) volume(pod map[string]any, hadTLS bool) error {
	volumes, err := listIn(pod, "volumes")
	if err != nil {
		return err
	}
	if hadTLS {
		volumes = without(volumes, func(v map[string]any) bool { return v["name"] == v1alpha1.TLSVolume })
	}
	if w.connection.Auth() == v1alpha1.AuthMutualTLS {
		if slices.ContainsFunc(volumes, func(v any) bool { return named(v, v1alpha1.TLSVolume) }) {
			return fmt.Errorf("volume %q is the connection's, the pod template must not have one of that name", v1alpha1.TLSVolume)
		}
		secret := map[string]any{"secretName": w.connection.MutualTLSSecretRef.Name}
		volumes = append(slices.Clip(volumes), map[string]any{"name": v1alpha1.TLSVolume, "secret": secret})
	}
	setList(pod, "volumes", volumes)
	return nil
}

// blockStart finds where the variables that were put in begin: at the last address, because what a user set of that
// name comes before; in manifests of earlier eras at the old name of the address. -1: there are none.
func blockStart(env []any) int {
	for i := range slices.Backward(env) {
		if named(env[i], envAddress) {
			return i
		}
	}
	return slices.IndexFunc(env, func(v any) bool { return named(v, envOldAddress) })
}

// splitBlock tells the variables that were put in from those that someone added behind them.
func splitBlock(env []any) (ours map[string]any, others []any) {
	ours = map[string]any{}
	for _, v := range env {
		item, _ := v.(map[string]any)
		name, _ := item["name"].(string)
		switch name {
		case envAddress, envNamespace, envDeployment, envBuildID, envServerName, envTLS, envKeyPath, envCertPath, envAPIKey,
			envOldAddress, envOldBuildID, envOldKeyPath, envOldCertPath:
			ours[name] = v
		default:
			others = append(others, v)
		}
	}
	return ours, others
}
