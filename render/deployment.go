package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// version is everything that a version's files are rendered from.
type version struct {
	name       rollout.Name
	buildID    string
	deployment string // the Deployment's name
	spec       v1alpha1.WorkerDeploymentSpec
	wiring     wiring
	replicas   *int32
	guard      v1alpha1.Guard
	pools      []v1alpha1.RecordedPool
	// pool is the name of the pool that this is the Deployment of, "" for the version's first one.
	pool string
}

// files renders the version, by file name below versions/<build ID>/.
func (v version) files() (map[string]string, error) {
	d, err := v.object()
	if err != nil {
		return nil, err
	}
	data, err := manifestText(d)
	if err != nil {
		return nil, err
	}
	out := map[string]string{layout.Deployment: data}
	for _, p := range v.pools {
		of, err := v.ofPool(p)
		if err != nil {
			return nil, err
		}
		d, err := of.object()
		if err != nil {
			return nil, fmt.Errorf("pool %s: %w", p.Name, err)
		}
		if out[rollout.PoolFile(p.Name)], err = manifestText(d); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ofPool is the version with a pool's template, name and replicas in place of its first Deployment's.
func (v version) ofPool(p v1alpha1.RecordedPool) (version, error) {
	at := slices.IndexFunc(v.spec.Pools, func(s v1alpha1.Pool) bool { return s.Name == p.Name })
	if at < 0 {
		return version{}, fmt.Errorf("pool %s is not in the spec", p.Name)
	}
	v.pool, v.pools, v.deployment, v.replicas = p.Name, nil, p.Deployment, p.Replicas
	v.spec.Template = v.spec.Pools[at].Template
	return v, nil
}

// object is the Deployment. The user's labels go to the pods only, the user's annotations to both.
func (v version) object() (map[string]any, error) {
	template, own, err := v.template()
	if err != nil {
		return nil, fmt.Errorf("pod template: %w", err)
	}
	annotations := maps.Clone(own)
	if err := setGuard(annotations, own, v.guard); err != nil {
		return nil, err
	}
	labels := v.labels()
	meta := map[string]any{"name": v.deployment, "namespace": v.name.Namespace, "labels": labels}
	if len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	spec := map[string]any{
		"selector": map[string]any{"matchLabels": labels},
		"template": template,
	}
	if n := v.spec.MinReadySeconds; n != 0 {
		spec["minReadySeconds"] = count(n)
	}
	if n := v.spec.ProgressDeadlineSeconds; n != nil {
		spec["progressDeadlineSeconds"] = count(*n)
	}
	if len(v.spec.Strategy) > 0 {
		if spec["strategy"], err = v1alpha1.DecodeJSON(v.spec.Strategy); err != nil {
			return nil, fmt.Errorf("strategy: %w", err)
		}
	}
	setReplicas(spec, v.replicas)
	return map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}, nil
}

func (v version) labels() map[string]any {
	labels := map[string]any{}
	of := rollout.SelectorLabels(v.name.Name, v.buildID)
	if v.pool != "" {
		of = rollout.PoolLabels(v.name.Name, v.pool, v.buildID)
	}
	setAll(labels, of)
	return labels
}

// template is the pod template as the user wrote it with what is added; own are the user's annotations. Its two hashes
// are the in-cluster controller's, so that it can take the pods over.
func (v version) template() (template, own map[string]any, err error) {
	raw, err := v1alpha1.DecodeJSON(v.spec.Template.Raw)
	if err != nil {
		return nil, nil, err
	}
	template, ok := raw.(map[string]any)
	if !ok {
		return nil, nil, errors.New("not an object")
	}
	meta, err := objectIn(template, "metadata")
	if err != nil {
		return nil, nil, err
	}
	labels, err := objectIn(meta, "labels")
	if err != nil {
		return nil, nil, err
	}
	maps.Copy(labels, v.labels())
	annotations, err := objectIn(meta, "annotations")
	if err != nil {
		return nil, nil, err
	}
	own = maps.Clone(annotations)
	annotations[rollout.AnnotationPodTemplateHash] = v.spec.Template.ControllerHash()
	return template, own, v.wiring.wire(template)
}

// setReplicas sets the number of replicas; nil leaves it out, for an autoscaler to own.
func setReplicas(spec map[string]any, replicas *int32) {
	if replicas == nil {
		delete(spec, "replicas")
		return
	}
	spec["replicas"] = count(*replicas)
}

func count(n int32) json.Number { return json.Number(strconv.Itoa(int(n))) }

// edit is what changes in a manifest: replicas, guard, and with rewire set, what a changed connection demands.
type edit struct {
	replicas *int32
	guard    v1alpha1.Guard
	rewire   *wiring
}

// editManifest makes an edit. Every other value stays. If there is nothing to change, the manifest is given back byte
// for byte.
func editManifest(data string, e edit) (string, error) {
	d, err := parseManifest(data)
	if err != nil {
		return "", err
	}
	before, err := yamlText(d)
	if err != nil {
		return "", err
	}
	if err := applyEdit(d, e); err != nil {
		return "", err
	}
	after, err := yamlText(d)
	if err != nil {
		return "", err
	}
	if after == before {
		return data, nil
	}
	return after, nil
}

func applyEdit(d map[string]any, e edit) error {
	spec, err := objectAt(d, "spec")
	if err != nil {
		return err
	}
	template, err := objectAt(spec, "template")
	if err != nil {
		return fmt.Errorf("spec.%w", err)
	}
	if e.rewire != nil {
		if err := e.rewire.rewire(template); err != nil {
			return fmt.Errorf("pod template: %w", err)
		}
	}
	setReplicas(spec, e.replicas)
	return editGuard(d, template, e.guard)
}

func editGuard(deployment, template map[string]any, guard v1alpha1.Guard) error {
	meta, err := objectAt(deployment, "metadata")
	if err != nil {
		return err
	}
	annotations, err := objectIn(meta, "annotations")
	if err != nil {
		return err
	}
	if err := setGuard(annotations, podAnnotations(template), guard); err != nil {
		return err
	}
	if len(annotations) == 0 {
		delete(meta, "annotations")
	}
	return nil
}

// podAnnotations are those of a pod template; nil if it has none.
func podAnnotations(template map[string]any) map[string]any {
	meta, _ := template["metadata"].(map[string]any)
	own, _ := meta["annotations"].(map[string]any)
	return own
}
