package takeover

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// plain makes a spec of a Deployment without versions, which stays as it is: its workers serve until those of the first
// version do.
func (i *importer) plain(p Plain) {
	d := i.findPlain(p.Deployment)
	if d == nil {
		return
	}
	if id := text(d.value, "metadata", "labels", rollout.LabelBuildID); id != "" {
		i.fail(d, "metadata.labels", "it is version %s of a worker deployment: import that", id)
		return
	}
	spec, env := plainSpec(d)
	options := map[string]any{"temporalNamespace": cmp.Or(p.TemporalNamespace, env["TEMPORAL_NAMESPACE"]),
		"connectionRef": map[string]any{"name": cmp.Or(p.Connection, "temporal")}}
	if options["temporalNamespace"] == "" {
		i.fail(d, "spec.template.spec.containers[0].env",
			"it does not say in which Temporal namespace its workers are: say it with --temporal-namespace")
		return
	}
	spec["workerOptions"] = options
	as := &object{file: d.file, node: d.node, apiVersion: v1alpha1.TemporalAPIVersion,
		kind: v1alpha1.KindTemporalWorkerDeployment, name: d.name,
		value: map[string]any{"metadata": d.value["metadata"], "spec": spec}}
	if there, ok := i.named[named{v1alpha1.KindWorkerDeployment, d.name}]; ok && there.path != i.fileOf(as) {
		i.fail(d, "", "%s has a worker deployment of this name already: there is nothing to import", there.path)
		return
	}
	if !i.plainConnection(as, env["TEMPORAL_ADDRESS"]) {
		return
	}
	if _, ok := i.decode(as); !ok {
		return
	}
	i.write(i.fileOf(as), as.source())
	i.out.Deployments = append(i.out.Deployments, Deployment{Name: d.name.String(), SpecPath: i.fileOf(as)})
}

// findPlain finds the Deployment that a person named.
func (i *importer) findPlain(name rollout.Name) *object {
	var found []*object
	for _, d := range i.deployments {
		if d.name.Name == name.Name && (name.Namespace == "" || d.name.Namespace == name.Namespace) {
			found = append(found, d)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	message := "Deployment " + name.String() + " is not among the objects: read it too"
	if len(found) > 1 {
		message = "Deployment " + name.String() + " is there in several namespaces: name it as NAMESPACE/NAME"
	}
	i.problems = append(i.problems, v1alpha1.Problem{Severity: v1alpha1.Error, File: files(i.in.Live),
		Message: message})
	return nil
}

// plainSpec is the spec that a Deployment leads to, but for its worker options, and what its containers' variables say
// that Rampart sets itself.
func plainSpec(d *object) (spec map[string]any, env map[string]string) {
	live, _ := d.value["spec"].(map[string]any)
	template, _ := live["template"].(map[string]any)
	template, env = plainTemplate(template)
	spec = map[string]any{
		"template": template,
		"rollout": map[string]any{"strategy": string(v1alpha1.Progressive), "steps": []any{
			map[string]any{"rampPercentage": json.Number("10"), "pauseDuration": "10m"},
			map[string]any{"rampPercentage": json.Number("50"), "pauseDuration": "10m"}}},
	}
	for _, field := range []string{"replicas", "minReadySeconds"} {
		if n, ok := number(live, field); ok && n != 0 {
			spec[field] = live[field]
		}
	}
	if n, ok := number(live, "progressDeadlineSeconds"); ok && n != v1alpha1.DefaultProgressDeadlineSeconds {
		spec["progressDeadlineSeconds"] = live["progressDeadlineSeconds"]
	}
	return spec, env
}

// plainTemplate is a live pod template as a person would write it. It is without defaults of the API server, keys of
// other tools, and the variables that Rampart sets.
func plainTemplate(template map[string]any) (out map[string]any, env map[string]string) {
	out = withoutCreation(maps.Clone(template))
	if meta, ok := out["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		for _, in := range []string{"labels", "annotations"} {
			if all, ok := meta[in].(map[string]any); ok {
				own := maps.Clone(all)
				maps.DeleteFunc(own, func(key string, _ any) bool { return v1alpha1.KeyOwner(key) != "" })
				meta[in] = own
			}
		}
		out["metadata"] = meta
	}
	pod, _ := out["spec"].(map[string]any)
	pod = maps.Clone(pod)
	out["spec"] = pod
	if pod["serviceAccount"] == pod["serviceAccountName"] {
		delete(pod, "serviceAccount")
	}
	dropDefaults(pod, map[string]string{"restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
		"schedulerName": "default-scheduler"}, "securityContext")
	if n, ok := number(pod, "terminationGracePeriodSeconds"); ok && n == 30 {
		delete(pod, "terminationGracePeriodSeconds")
	}
	env = map[string]string{}
	for _, list := range []string{"initContainers", "containers"} {
		var containers []any
		for _, c := range objects(pod, list) {
			c = maps.Clone(c)
			dropDefaults(c, map[string]string{"terminationMessagePath": "/dev/termination-log",
				"terminationMessagePolicy": "File"}, "resources")
			if list == "containers" {
				takeEnv(c, env)
			}
			containers = append(containers, c)
		}
		if containers != nil {
			pod[list] = containers
		}
	}
	return out, env
}

// dropDefaults removes fields that have their default, and objects that are empty.
func dropDefaults(m map[string]any, defaults map[string]string, empty string) {
	for key, value := range defaults {
		if m[key] == value {
			delete(m, key)
		}
	}
	if o, ok := m[empty].(map[string]any); ok && len(o) == 0 {
		delete(m, empty)
	}
}

// takeEnv takes the variables that Rampart sets out of a container.
func takeEnv(c map[string]any, env map[string]string) {
	list, _ := c["env"].([]any)
	var own []any
	for _, v := range list {
		name := text(v, "name")
		if !slices.Contains(v1alpha1.OwnedEnv(), name) && !slices.Contains(v1alpha1.LegacyEnv(), name) {
			own = append(own, v)
			continue
		}
		env[name] = cmp.Or(text(v, "value"), "from elsewhere")
	}
	c["env"] = own
	if own == nil {
		delete(c, "env")
	}
}

// plainConnection finds the connection of a spec that was made of a Deployment. Where there is none, and the containers
// say no more than an address, it is written.
func (i *importer) plainConnection(o *object, address string) bool {
	name := text(o.value, "spec", "workerOptions", "connectionRef", "name")
	as := named{v1alpha1.KindConnection, rollout.Name{Namespace: o.name.Namespace, Name: name}}
	if _, ok := i.named[as]; ok {
		return true
	}
	if address == "" || address == "from elsewhere" {
		i.fail(o, "", "connection %s is neither among the objects nor in the repository: write one, or name another "+
			"with --connection", as.name)
		return false
	}
	c := &object{file: o.file, node: o.node, apiVersion: v1alpha1.TemporalAPIVersion, kind: v1alpha1.KindConnection,
		name: as.name, value: map[string]any{"spec": map[string]any{"hostPort": address}}}
	before := len(i.problems)
	i.take(c)
	i.warn(o, "", "%s is made from TEMPORAL_ADDRESS alone: if the workers need a "+
		"certificate or an API key, add its Secret to the connection", i.fileOf(c))
	return !v1alpha1.HasErrors(i.problems[before:])
}

// others reports versions of worker deployments that are not among the objects, and counts the Deployments that are of
// no concern.
func (i *importer) others() {
	for _, d := range i.deployments {
		label := text(d.value, "metadata", "labels", rollout.LabelDeploymentName)
		known := slices.ContainsFunc(i.workers, func(w *object) bool { return (&worker{object: w}).owns(d) })
		isPlain := slices.ContainsFunc(i.in.Plain, func(p Plain) bool {
			return p.Deployment.Name == d.name.Name &&
				(p.Deployment.Namespace == "" || p.Deployment.Namespace == d.name.Namespace)
		})
		switch {
		case known || isPlain:
		case label != "":
			i.fail(d, "metadata.labels", "its worker deployment %s is not among the objects: read it too", label)
		default:
			i.out.Ignored[d.kind]++
		}
	}
}
