package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	// Different from ours, without a status subresource: of another release.
	Different State = "different"
	// WithSubresource is a definition with a status subresource, as the in-cluster worker controller's are. The API server drops a status that is applied
	// with its object.
	WithSubresource State = "with a status subresource"
)

// Definition is one custom resource definition in a cluster.
type Definition struct {
	// Name such as workerdeployments.temporal.io.
	Name  string
	State State
}

// SubresourceError says that definitions in the cluster have a status subresource.
type SubresourceError struct {
	Names []string
	Host  string
}

func (e *SubresourceError) Error() string {
	return fmt.Sprintf("%s has definitions of the in-cluster worker controller: %s have a status subresource, with which the status from Git is dropped. "+
		"Nothing was changed. Replacing them takes their status from that controller, which then cannot work: stop it first, and then give --replace-controller",
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
		out[i] = Definition{f.ours.GetName(), f.state}
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
	case sameJSON(versionsOf(ours), versionsOf(there)):
		return Same
	}
	return Different
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

// Install creates the definitions that are missing, brings those of another release up to date, and waits until the API server serves them. Where one has a status
// subresource it changes nothing, unless it may replace them. told is called with each name and what was done.
// Errors: *SubresourceError; the API server's, after which it can be called again.
func (c *Cluster) Install(ctx context.Context, replace bool, told func(name, done string)) error {
	found, err := c.definitions(ctx)
	if err != nil {
		return err
	}
	if !replace {
		refused := &SubresourceError{Host: c.Host}
		for _, f := range found {
			if f.state == WithSubresource {
				refused.Names = append(refused.Names, f.ours.GetName())
			}
		}
		if refused.Names != nil {
			return refused
		}
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
	_, err = client.Update(ctx, to, metav1.UpdateOptions{FieldManager: "rampart"})
	return "replaced", err
}

// served waits until a definition is established.
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
