// Package delivery makes the objects by which ArgoCD and Flux apply the output of environments. It is pure: values in,
// YAML out.
package delivery

import (
	"bytes"
	"embed"
	"fmt"
	"text/template"
)

//go:embed *.tmpl
var files embed.FS

// Delivery is what a tool applies.
type Delivery struct {
	// URL of the repository, as the tool reaches it.
	URL          string
	Environments []Environment
	// Kinds of the objects whose health is checked.
	Kinds []string
}

// Environment is the output of one environment.
type Environment struct {
	// Name of the tool's objects.
	Name string
	// Branch and Path of the output, from the repository's root.
	Branch, Path string
	Deployments  []Deployment
}

// Deployment is a worker deployment that Flux waits for.
type Deployment struct{ Kind, Namespace, Name string }

// ArgoCD gives an Application for each environment, and the part of Argo CD's ConfigMap with the health checks, to be
// applied server-side.
func ArgoCD(d Delivery) ([]byte, error) { return d.manifest("argocd.yaml.tmpl") }

// Flux gives a GitRepository and a Kustomization for each environment.
func Flux(d Delivery) ([]byte, error) { return d.manifest("flux.yaml.tmpl") }

func (d Delivery) manifest(name string) ([]byte, error) {
	t, err := template.ParseFS(files, name)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", name, err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, d); err != nil {
		return nil, fmt.Errorf("render %s: %w", name, err)
	}
	return b.Bytes(), nil
}
