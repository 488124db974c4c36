package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/install/crds"
)

// State is what a cluster has under the name of one of our custom resource definitions.
type State string

// The states of a definition.
const (
	Missing State = "missing"
	// Same as ours.
	Same State = "up to date"
	// Different from ours, without a status subresource: of an earlier release, or edited.
	Different State = "different"
	// Newer is a definition that differs from ours, and is of a later release.
	Newer State = "of a later release"
	// WithSubresource is a definition with a status subresource, as the in-cluster worker controller's are. The API
	// server drops a status that is applied with its object.
	WithSubresource State = "with a status subresource"
)

// Definition is one custom resource definition in a cluster.
type Definition struct {
	// Name such as workerdeployments.temporal.io.
	Name  string
	State State
	// Release that the one in the cluster is of; "" where it does not say.
	Release string
}

// NewerError says that definitions in the cluster are of a later release than ours.
type NewerError struct {
	Names []string
	Host  string
	// Theirs is the release of the first of them.
	Theirs, Ours string
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%s has definitions of release %s, and this binary those of %s: %s. Nothing was changed, "+
		"since an earlier definition can drop fields that objects have: "+
		"use rampart %s, or go back with rampart crds | kubectl apply --server-side --force-conflicts -f -", e.Host,
		e.Theirs, e.Ours, strings.Join(e.Names, ", "), e.Theirs)
}

// SubresourceError says that definitions in the cluster have a status subresource.
type SubresourceError struct {
	Names []string
	Host  string
}

func (e *SubresourceError) Error() string {
	return fmt.Sprintf("%s has definitions of the in-cluster worker controller: %s have a status subresource, with "+
		"which the status from Git is dropped. "+
		"Nothing was changed. Replacing them takes their status from that controller, which then cannot work: stop "+
		"it first, and then give --replace-controller",
		e.Host, strings.Join(e.Names, ", "))
}

// Definitions looks at each of our custom resource definitions in the cluster, sorted by name.
func (c *Cluster) Definitions(ctx context.Context) ([]Definition, error) {
	found, err := c.definitions(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Definition, len(found))
	for i, f := range found {
		out[i] = Definition{f.ours.GetName(), f.state, releaseOf(f.there)}
	}
	return out, nil
}

// installed is one definition of ours, and what the cluster has under its name.
type installed struct {
	ours, there *unstructured.Unstructured
	state       State
}

func (c *Cluster) definitions(ctx context.Context) ([]installed, error) {
	var out []installed
	for _, ours := range definitions() {
		there, err := c.get(ctx, definitionResource, ours.GetName())
		if err != nil {
			return nil, c.failed("read the custom resource definition "+ours.GetName(), err)
		}
		out = append(out, installed{ours, there, stateOf(ours, there)})
	}
	return out, nil
}

// definitions of ours, sorted by name.
func definitions() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, data := range crds.Definitions() {
		d := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &d.Object); err != nil {
			panic(fmt.Sprintf("an embedded definition cannot be read: %v", err))
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}

func stateOf(ours, there *unstructured.Unstructured) State {
	switch {
	case there == nil:
		return Missing
	case hasSubresource(there):
		return WithSubresource
	case !earlier(there, ours) && sameJSON(specOf(ours), specOf(there)):
		return Same
	case earlier(ours, there):
		return Newer
	}
	return Different
}

// releaseOf is the release that a definition is of; "" where it does not say.
func releaseOf(definition *unstructured.Unstructured) string {
	if definition == nil {
		return ""
	}
	return definition.GetAnnotations()[crds.Release]
}

// earlier reports whether a definition is of an earlier release than another. One that does not say is earlier than
// all.
func earlier(a, b *unstructured.Unstructured) bool {
	left, err := version.ParseSemantic(releaseOf(a))
	right, err2 := version.ParseSemantic(releaseOf(b))
	return err2 == nil && (err != nil || left.LessThan(right))
}

// specOf is the spec of a definition without what the API server fills in.
func specOf(definition *unstructured.Unstructured) map[string]any {
	spec, _, _ := unstructured.NestedMap(definition.Object, "spec")
	if strategy, _, _ := unstructured.NestedString(spec, "conversion", "strategy"); strategy == "None" {
		delete(spec, "conversion")
	}
	return spec
}

// sameJSON compares two values as they are written: numbers of a file are of another type than those of a server.
func sameJSON(a, b any) bool {
	left, err := json.Marshal(a)
	right, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(left, right)
}

func versionsOf(definition *unstructured.Unstructured) []any {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	return versions
}

// hasSubresource reports whether a version of the definition has a status subresource.
func hasSubresource(definition *unstructured.Unstructured) bool {
	return slices.ContainsFunc(versionsOf(definition), func(v any) bool {
		version, _ := v.(map[string]any)
		_, has, _ := unstructured.NestedFieldNoCopy(version, "subresources", "status")
		return has
	})
}

// Install creates missing definitions, updates those that differ, and waits until the API server serves them. It
// changes nothing where one is of a later release, or has a status subresource and may not be replaced. told is called
// with each name and what was done. Errors: *NewerError; *SubresourceError; the API server's, after which it can be
// called again.
func (c *Cluster) Install(ctx context.Context, replace bool, told func(name, done string)) error {
	found, err := c.definitions(ctx)
	if err != nil {
		return err
	}
	if err := c.mayInstall(found, replace); err != nil {
		return err
	}
	for _, f := range found {
		done, err := c.put(ctx, f)
		if err != nil {
			return c.failed("install the custom resource definition "+f.ours.GetName(), err)
		}
		told(f.ours.GetName(), done)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, f := range found {
		if err := c.served(ctx, f.ours.GetName()); err != nil {
			return c.failed("wait until the API server serves "+f.ours.GetName(), err)
		}
	}
	return nil
}

func (c *Cluster) mayInstall(found []installed, replace bool) error {
	newer, subresource := &NewerError{Host: c.Host}, &SubresourceError{Host: c.Host}
	for _, f := range found {
		switch f.state {
		case Newer:
			newer.Names = append(newer.Names, f.ours.GetName())
			newer.Theirs, newer.Ours = cmp.Or(newer.Theirs, releaseOf(f.there)), releaseOf(f.ours)
		case WithSubresource:
			subresource.Names = append(subresource.Names, f.ours.GetName())
		}
	}
	switch {
	case newer.Names != nil:
		return newer
	case subresource.Names != nil && !replace:
		return subresource
	}
	return nil
}

// put makes the definition in the cluster ours. Labels and annotations of others stay.
func (c *Cluster) put(ctx context.Context, f installed) (done string, err error) {
	client := c.client.Resource(definitionResource)
	switch f.state {
	case Same:
		return "unchanged", nil
	case Missing:
		_, err := client.Create(ctx, f.ours, metav1.CreateOptions{FieldManager: "rampart"})
		return "created", err
	}
	to := f.there.DeepCopy() // with its resourceVersion: what changes meanwhile is a conflict
	to.Object["spec"] = f.ours.Object["spec"]
	annotations := to.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, f.ours.GetAnnotations())
	to.SetAnnotations(annotations)
	_, err = client.Update(ctx, to, metav1.UpdateOptions{FieldManager: "rampart"})
	return "replaced", err
}

func (c *Cluster) served(ctx context.Context, name string) error {
	for {
		there, err := c.get(ctx, definitionResource, name)
		if err == nil && there != nil && isTrue(there, "Established") {
			return nil
		}
		select {
		case <-ctx.Done():
			if err != nil {
				return err
			}
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// isTrue reports whether an object has a condition that is True.
func isTrue(object *unstructured.Unstructured, condition string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		of, _ := c.(map[string]any)
		return of["type"] == condition && of["status"] == "True"
	})
}
