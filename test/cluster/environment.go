package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// user is the user, and the group, that the pod's containers run as; root where it names none.
func (p *pod) user() (user, group int64) {
	if s := p.object.Spec.SecurityContext; s != nil && s.RunAsUser != nil {
		user = *s.RunAsUser
		if s.RunAsGroup != nil {
			group = *s.RunAsGroup
		}
	}
	return user, group
}

// mounts makes the folders of a container's volumes, and replaces the paths that they are mounted at by them. In an
// image's root they are at these paths, empty, and the pod's user owns them.
func (p *pod) mounts(ctx context.Context, c corev1.Container, root string) (*strings.Replacer, error) {
	var pairs []string
	for _, m := range c.VolumeMounts {
		i := slices.IndexFunc(p.object.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 || m.MountPath == "/tmp" && root == "" || p.object.Spec.Volumes[i].Projected != nil {
			continue // a service account's token is of no use to a process here
		}
		dir := filepath.Join(p.dir, string(p.object.UID), m.Name)
		if root != "" {
			dir = filepath.Join(root, m.MountPath)
			if err := os.RemoveAll(dir); err != nil {
				return nil, err
			}
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		user, group := p.user()
		own := func(name string) error {
			if root == "" {
				return nil
			}
			return os.Chown(name, int(user), int(group))
		}
		if err := own(dir); err != nil {
			return nil, err
		}
		var data map[string]string
		var items []corev1.KeyToPath
		var err error
		switch v := p.object.Spec.Volumes[i]; {
		case v.EmptyDir != nil:
		case v.ConfigMap != nil:
			items = v.ConfigMap.Items
			data, err = p.data(ctx, &corev1.ConfigMapEnvSource{LocalObjectReference: v.ConfigMap.LocalObjectReference,
				Optional: v.ConfigMap.Optional}, nil)
		case v.Secret != nil:
			items = v.Secret.Items
			data, err = p.data(ctx, nil, &corev1.SecretEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: v.Secret.SecretName},
				Optional:             v.Secret.Optional})
		default:
			err = fmt.Errorf("volume %s: this kubelet does not know its source", v.Name)
		}
		if err != nil {
			return nil, err
		}
		if data == nil { // it is optional, or an emptyDir
			items = nil
		} else if items == nil {
			for key := range data {
				items = append(items, corev1.KeyToPath{Key: key, Path: key})
			}
		}
		for _, item := range items {
			text, there := data[item.Key]
			if !there {
				return nil, fmt.Errorf("volume %s: references non-existent key %s", m.Name, item.Key)
			}
			file := filepath.Join(dir, item.Path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600),
				own(file)); err != nil {
				return nil, err
			}
		}
		if root == "" {
			pairs = append(pairs, m.MountPath, dir)
		}
	}
	return strings.NewReplacer(pairs...), nil
}

// environment is what the variables of a container come to, with this machine's PATH for a program of this machine.
func (p *pod) environment(ctx context.Context, c corev1.Container, ofMachine bool) (map[string]string, error) {
	env := map[string]string{"HOSTNAME": p.object.Name}
	if ofMachine {
		env["PATH"], env["HOME"] = os.Getenv("PATH"), p.dir
	}
	for _, from := range c.EnvFrom {
		data, err := p.data(ctx, from.ConfigMapRef, from.SecretRef)
		if err != nil {
			return nil, err
		}
		for key, value := range data {
			env[from.Prefix+key] = value
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			env[e.Name] = expand(e.Value, env)
			continue
		}
		var data map[string]string
		var err error
		key, optional := "", (*bool)(nil)
		switch from := e.ValueFrom; {
		case from.FieldRef != nil:
			env[e.Name] = map[string]string{"metadata.name": p.object.Name, "metadata.namespace": p.object.Namespace,
				"metadata.uid":  string(p.object.UID),
				"spec.nodeName": nodeName, "status.podIP": p.ip}[from.FieldRef.FieldPath]
			continue
		case from.ConfigMapKeyRef != nil:
			key, optional = from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Optional
			data, err = p.data(ctx, &corev1.ConfigMapEnvSource{
				LocalObjectReference: from.ConfigMapKeyRef.LocalObjectReference, Optional: optional}, nil)
		case from.SecretKeyRef != nil:
			key, optional = from.SecretKeyRef.Key, from.SecretKeyRef.Optional
			data, err = p.data(ctx, nil, &corev1.SecretEnvSource{
				LocalObjectReference: from.SecretKeyRef.LocalObjectReference, Optional: optional})
		default:
			err = fmt.Errorf("variable %s: this kubelet does not know its source", e.Name)
		}
		if err != nil {
			return nil, err
		}
		value, there := data[key]
		switch {
		case there:
			env[e.Name] = value
		case optional == nil || !*optional:
			return nil, fmt.Errorf("couldn't find key %s for variable %s", key, e.Name)
		}
	}
	return env, nil
}

// data of a ConfigMap or a Secret; the other one is nil. There is none where it is optional and not there.
func (p *pod) data(ctx context.Context, config *corev1.ConfigMapEnvSource,
	secret *corev1.SecretEnvSource) (map[string]string, error) {
	var resource, name string
	var optional *bool
	if config != nil {
		resource, name, optional = "configmaps", config.Name, config.Optional
	} else {
		resource, name, optional = "secrets", secret.Name, secret.Optional
	}
	found, err := p.in(resource, p.object.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && optional != nil && *optional:
		return nil, nil
	case err != nil:
		return nil, err
	}
	out, _, err := unstructured.NestedStringMap(found.Object, "data")
	for key, value := range out {
		if resource == "secrets" {
			text, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				return nil, err
			}
			out[key] = string(text)
		}
	}
	return out, err
}

var reference = regexp.MustCompile(`\$\$|\$\([A-Za-z_.-][A-Za-z0-9_.-]*\)`)

// expand replaces $(NAME) as Kubernetes does: $$ is a $, and a name that is not set stays as it is written.
func expand(text string, env map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(m string) string {
		if m == "$$" {
			return "$"
		}
		if value, ok := env[m[2:len(m)-1]]; ok {
			return value
		}
		return m
	})
}
