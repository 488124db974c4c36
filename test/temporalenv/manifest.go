package temporalenv

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Object is one Kubernetes object as rendered.
type Object struct {
	APIVersion, Kind, Namespace, Name string
	// Guarded is whether it carries a prune guard of ArgoCD or Flux.
	Guarded bool
	// Deployment is set for an apps/v1 Deployment.
	Deployment *Deployment

	canonical string
}

// ID tells objects apart: "Deployment shop/checkout-v1".
func (o Object) ID() string { return o.Kind + " " + o.Namespace + "/" + o.Name }

// Deployment is the part of an apps/v1 Deployment that the fleet runs.
type Deployment struct {
	// ReplicasSet is whether the manifest says how many replicas; Replicas is that number.
	ReplicasSet bool
	Replicas    int
	// Image is the image of the first container, Env its environment in the order written.
	Image string
	Env   []corev1.EnvVar

	// template is the pod template in canonical form: another one means a rolling restart.
	template string
}

// ParseManifests reads a stream of YAML documents; empty ones are left out. Deployments are decoded strictly.
func ParseManifests(stream []byte) ([]Object, error) {
	var out []Object
	for i, doc := range documents(stream) {
		o, err := parseObject(doc)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		out = append(out, o)
	}
	return out, nil
}

// documents splits at lines of "---", which is how every manifest tool in use writes streams.
func documents(stream []byte) [][]byte {
	var out [][]byte
	var doc []byte
	flush := func() {
		var v any
		if err := yaml.Unmarshal(doc, &v); err != nil || v != nil {
			out = append(out, doc)
		}
		doc = nil
	}
	for line := range bytes.Lines(stream) {
		if rest, ok := bytes.CutPrefix(line, []byte("---")); ok && len(bytes.TrimSpace(rest)) == 0 {
			flush()
			continue
		}
		doc = append(doc, line...)
	}
	flush()
	return out
}

func parseObject(doc []byte) (Object, error) {
	var meta struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name        string            `json:"name"`
			Namespace   string            `json:"namespace"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	canonical, err := yaml.YAMLToJSON(doc)
	if err != nil {
		return Object{}, fmt.Errorf("read object: %w", err)
	}
	if err := json.Unmarshal(canonical, &meta); err != nil {
		return Object{}, fmt.Errorf("read object: %w", err)
	}
	o := Object{
		APIVersion: meta.APIVersion, Kind: meta.Kind, Namespace: meta.Metadata.Namespace, Name: meta.Metadata.Name,
		Guarded: guarded(meta.Metadata.Annotations), canonical: string(canonical),
	}
	if o.Kind == "" || o.Name == "" {
		return Object{}, fmt.Errorf("object without kind or name: %q", o.ID())
	}
	if o.Kind == "Deployment" && o.APIVersion == "apps/v1" {
		if o.Deployment, err = parseDeployment(doc); err != nil {
			return Object{}, fmt.Errorf("read %s: %w", o.ID(), err)
		}
	}
	return o, nil
}

func parseDeployment(doc []byte) (*Deployment, error) {
	var in appsv1.Deployment
	if err := yaml.UnmarshalStrict(doc, &in); err != nil {
		return nil, err
	}
	if len(in.Spec.Template.Spec.Containers) == 0 {
		return nil, errors.New("no container")
	}
	template, err := json.Marshal(in.Spec.Template)
	if err != nil {
		return nil, err
	}
	first := in.Spec.Template.Spec.Containers[0]
	d := &Deployment{Image: first.Image, Env: first.Env, template: string(template)}
	if in.Spec.Replicas != nil {
		if *in.Spec.Replicas < 0 {
			return nil, errors.New("negative replicas")
		}
		d.ReplicasSet, d.Replicas = true, int(*in.Spec.Replicas)
	}
	return d, nil
}

// guarded is whether ArgoCD or Flux would refuse to prune an object with these annotations.
func guarded(annotations map[string]string) bool {
	options := strings.Split(annotations["argocd.argoproj.io/sync-options"], ",")
	return slices.ContainsFunc(options, func(o string) bool { return strings.TrimSpace(o) == "Prune=false" }) ||
		annotations["kustomize.toolkit.fluxcd.io/prune"] == "disabled"
}
