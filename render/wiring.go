package render

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// The environment variables of pods, which the SDKs' environment configuration reads. Those after the blank line are
// the names that the same values had in earlier eras. An API key gets no TEMPORAL_TLS beside it: with a key the SDKs
// use TLS unless told otherwise, and the in-cluster controller sets none.
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
	caKey   = "ca.crt"
	caCert  = v1alpha1.CAMountPath + "/" + caKey
)

// wiring is what ties pods to Temporal: variables in each container, and the volumes of certificates.
type wiring struct {
	connection v1alpha1.ConnectionSpec
	// namespace in Temporal; deployment is the worker deployment's name there.
	namespace, deployment, buildID string
	names                          v1alpha1.WorkerEnv
}

// block gives the variables in their order. What names the version is taken from kept where it is there: a connection
// cannot change it. The certificates to trust are left out where the user's own variables name some.
func (w wiring) block(kept map[string]any, names v1alpha1.WorkerEnv, users []any) []any {
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
	if w.connection.CACertSecret() != "" && !slices.ContainsFunc(users, func(v any) bool {
		return named(v, v1alpha1.CAPathEnv)
	}) {
		block = append(block, variable(v1alpha1.CAPathEnv, caCert))
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

// rewire brings a rendered template to another connection, whatever it had before. What the old one demanded goes, what
// the new one demands comes, and everything else stays.
func (w wiring) rewire(template map[string]any) error {
	return w.apply(template, blockStart)
}

func (w wiring) apply(template map[string]any, start func(env []any) int) error {
	annotations, err := annotationsOf(template)
	if err != nil {
		return err
	}
	annotations[rollout.AnnotationConnectionHash] = w.connection.ControllerHash()
	pod, err := objectAt(template, "spec")
	if err != nil {
		return err
	}
	containers, err := listIn(pod, "containers")
	if err != nil {
		return err
	}
	hadCA, err := hasCA(pod)
	if err != nil {
		return err
	}
	var had []string
	for i, c := range containers {
		container, ok := c.(map[string]any)
		if !ok {
			return fmt.Errorf("containers[%d] is not an object", i)
		}
		volumes, err := w.container(container, hadCA, start)
		if err != nil {
			return fmt.Errorf("containers[%d]: %w", i, err)
		}
		had = append(had, volumes...)
	}
	return w.setVolumes(pod, had)
}

// secretVolume is a volume that a connection gives to pods.
type secretVolume struct {
	name, path string
	// source is the Secret that it is made from.
	source map[string]any
}

// volumes that the connection gives to pods.
func (w wiring) volumes() []secretVolume {
	var out []secretVolume
	if w.connection.Auth() == v1alpha1.AuthMutualTLS {
		out = append(out, secretVolume{v1alpha1.TLSVolume, v1alpha1.TLSMountPath,
			map[string]any{"secretName": w.connection.MutualTLSSecretRef.Name}})
	}
	if ca := w.connection.CACertSecret(); ca != "" { // of its Secret the pods see nothing else, such as a key
		out = append(out, secretVolume{v1alpha1.CAVolume, v1alpha1.CAMountPath,
			map[string]any{"secretName": ca, "items": caItems()}})
	}
	return out
}

func caItems() []any { return []any{map[string]any{"key": caKey, "path": caKey}} }

// hasCA says whether pods have the volume of certificates to trust that a connection gives. Manifests of earlier
// releases, and those that were taken over, may have one of the user's own under that name.
func hasCA(pod map[string]any) (bool, error) {
	volumes, err := listIn(pod, "volumes")
	return slices.ContainsFunc(volumes, func(v any) bool {
		volume, _ := v.(map[string]any)
		secret, _ := volume["secret"].(map[string]any)
		return named(v, v1alpha1.CAVolume) && reflect.DeepEqual(secret["items"], any(caItems()))
	}), err
}

// container puts the block and the mounts of certificates into a container. It gives the volumes that the block before
// used.
func (w wiring) container(container map[string]any, hadCA bool, start func(env []any) int) (had []string, err error) {
	env, err := listIn(container, "env")
	if err != nil {
		return nil, err
	}
	names, kept, before, after := w.names, map[string]any(nil), env, []any(nil)
	if at := start(env); at >= 0 {
		before = env[:at]
		kept, after = splitBlock(env[at:])
		if kept[envCertPath] != nil || kept[envOldCertPath] != nil {
			had = append(had, v1alpha1.TLSVolume)
		}
		if hadCA { // the variable may be the user's own
			had = append(had, v1alpha1.CAVolume)
		}
		names = v1alpha1.EnvCurrent
		if kept[envOldAddress] != nil || kept[envOldBuildID] != nil {
			names = v1alpha1.EnvWithLegacyNames
		}
	}
	container["env"] = slices.Concat(before, w.block(kept, names, slices.Concat(before, after)), after)

	mounts, err := listIn(container, "volumeMounts")
	if err != nil {
		return nil, err
	}
	mounts = without(mounts, func(m map[string]any) bool {
		return slices.ContainsFunc(had, func(name string) bool {
			return m["name"] == name && m["mountPath"] == mountPaths[name]
		})
	})
	for _, v := range w.volumes() {
		mounts = append(slices.Clip(mounts), map[string]any{"name": v.name, "mountPath": v.path})
	}
	setList(container, "volumeMounts", mounts)
	return had, nil
}

// mountPaths of the volumes that connections give to pods.
var mountPaths = map[string]string{v1alpha1.TLSVolume: v1alpha1.TLSMountPath, v1alpha1.CAVolume: v1alpha1.CAMountPath}

// setVolumes puts the connection's volumes into the pod, in place of those that it had before.
func (w wiring) setVolumes(pod map[string]any, had []string) error {
	volumes, err := listIn(pod, "volumes")
	if err != nil {
		return err
	}
	volumes = without(volumes, func(v map[string]any) bool {
		return slices.ContainsFunc(had, func(name string) bool { return v["name"] == name })
	})
	for _, v := range w.volumes() {
		if slices.ContainsFunc(volumes, func(other any) bool { return named(other, v.name) }) {
			return fmt.Errorf("volume %q is the connection's, the pod template must not have one of that name", v.name)
		}
		volumes = append(slices.Clip(volumes), map[string]any{"name": v.name, "secret": v.source})
	}
	setList(pod, "volumes", volumes)
	return nil
}

// blockStart finds where the variables that were put in begin. It is at the last address, because what a user set of
// that name comes before; in manifests of earlier eras at the old name of the address. -1: there are none.
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
		case envAddress, envNamespace, envDeployment, envBuildID, envServerName, envTLS, envKeyPath, envCertPath,
			envAPIKey, envOldAddress, envOldBuildID, envOldKeyPath, envOldCertPath:
			ours[name] = v
		case v1alpha1.CAPathEnv:
			if item["value"] == caCert {
				ours[name] = v
				continue
			}
			others = append(others, v)
		default:
			others = append(others, v)
		}
	}
	return ours, others
}
