package v1alpha1

import "fmt"

// respell rewrites the field names of earlier eras of the in-cluster controller to today's, with a warning that says
// so.
func respell(r *report, kind string, n *node) {
	s := speller{r}
	spec := n.get("spec")
	switch kind {
	case KindWorkerDeployment, KindTemporalWorkerDeployment:
		s.workerDeployment(n, spec)
	case KindConnection, KindTemporalConnection, KindClusterConnection:
		if secret := spec.get("mutualTLSSecret"); secret != nil && secret.kind == stringNode && secret.text == "" {
			s.report.warnf(secret, "mutualTLSSecret is an early spelling, and empty: remove it")
			spec.drop("mutualTLSSecret")
		}
		s.name(spec, "mutualTLSSecret", "mutualTLSSecretRef")
	}
}

type speller struct{ report *report }

func (s speller) workerDeployment(n, spec *node) {
	s.refuse(spec, "deployment", "a whole Deployment is not supported: write its pod template as spec.template, and "+
		"beside it replicas, strategy, minReadySeconds and "+
		"progressDeadlineSeconds; the selector and the labels follow from the name")
	s.refuse(spec, "compute",
		"serverless workers are not supported: their versions have no Deployment that could be rendered")
	s.rename(spec, "cutover", "rollout")
	s.remove(spec, "maxVersions", "the limit of versions is not the spec's any more; remove it")
	s.remove(spec, "selector", "the selector follows from the name and the build ID; remove it")
	options := spec.get("workerOptions")
	s.rename(options, "buildID", "unsafeCustomBuildID")
	s.rename(options, "customBuildID", "unsafeCustomBuildID")
	s.name(options, "connection", "connectionRef")
	for _, key := range []string{"deploymentName", "series"} {
		s.deploymentName(n, options, key)
	}
	if queue := options.get("taskQueue"); queue != nil {
		s.report.errorf(queue,
			"pods are not given TEMPORAL_TASK_QUEUE any more: set the task queue in the worker's own code or "+
				"environment, and remove this field")
		queue.bad = true
		options.drop("taskQueue")
	}
}

// rename gives a field its present name.
func (s speller) rename(parent *node, old, now string) *node {
	field := parent.get(old)
	if field == nil {
		return nil
	}
	if other := parent.get(now); other != nil {
		s.report.errorf(field, "%s is an early spelling of %s, which is given too (line %d): keep one", old, now,
			other.line)
		parent.drop(old)
		return nil
	}
	s.report.warnf(field, "%s is an early spelling of %s: rename it", old, now)
	field.key = now
	parent.sort()
	return field
}

// name turns a field that was a name into a reference.
func (s speller) name(parent *node, old, now string) {
	field := s.rename(parent, old, now)
	if field == nil || field.kind != stringNode {
		return
	}
	name := *field
	name.parent, name.key, name.word = field, "name", false
	*field = node{parent: parent, key: now, index: field.index, kind: objectNode, line: field.line,
		column: field.column, kids: []*node{&name}}
}

// refuse reports a field of the in-cluster controller that Rampart does not support. It stands in place of a pod
// template, which is then not missed.
func (s speller) refuse(parent *node, key, why string) {
	switch field := parent.get(key); {
	case field == nil:
	case field.kind == nullNode:
		parent.drop(key)
	default:
		s.report.errorf(field, "%s", why)
		field.bad, field.meant = true, "template"
	}
}

// remove takes out a field that has no meaning any more.
func (s speller) remove(parent *node, key, why string) {
	if field := parent.get(key); field != nil {
		s.report.warnf(field, "%s", why)
		parent.drop(key)
	}
}

// deploymentName takes out a worker deployment's name in Temporal. The name cannot be chosen any more. A spec that
// asks for another name would get a new worker deployment beside the one that its workflows are in, so a person has
// to decide that.
func (s speller) deploymentName(n, options *node, key string) {
	field := options.get(key)
	if field == nil {
		return
	}
	namespace, name := n.at("metadata", "namespace").str(), n.at("metadata", "name").str()
	fixed := namespace + "/" + name
	if field.str() == fixed {
		s.report.warnf(field, "the worker deployment's name in Temporal always is namespace/name; remove this field")
	} else {
		if namespace == "" {
			fixed = "<namespace>/" + name
		}
		s.report.errorf(field, "%s",
			fmt.Sprintf("the worker deployment's name in Temporal always is namespace/name, here %s, not %s: "+
				"remove this field and let the old name's workflows finish", quote(fixed), quote(field.str())))
	}
	options.drop(key)
}
