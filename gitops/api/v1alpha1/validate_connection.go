package v1alpha1

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"
)

// hostPattern is what the in-cluster controller allows for hosts and server names.
var hostPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9.-]+$`) })

func (v *validator) connection(n *node, c *Connection) {
	metadata := v.metadata(n)
	v.reference(metadata, "a connection's name")
	if namespace := metadata.get("namespace"); c.Kind == KindClusterConnection && namespace.present() &&
		namespace.str() != "" {
		v.errorf(namespace, "a ClusterConnection is in no namespace: remove it")
	}
	spec := v.require(n, "spec")
	if spec == nil {
		return
	}
	v.hostPort(v.text(spec, "hostPort"))
	if name := spec.at("tls", "serverName"); name.present() && name.str() != "" {
		v.matches(name, hostPattern(), "a server name: letters, digits, dots and hyphens")
	}
	if ca := spec.at("tls", "caCertSecretRef"); ca.present() {
		v.reference(ca, "a Secret's name")
	}
	tls, key := spec.get("mutualTLSSecretRef"), spec.get("apiKeySecretRef")
	if c.Spec.MutualTLSSecretRef != nil && c.Spec.APIKeySecretRef != nil {
		v.oneOf(spec, "mutualTLSSecretRef", "apiKeySecretRef")
	}
	if tls.present() {
		v.reference(tls, "a Secret's name")
	}
	v.keySelector(key)
}

func (v *validator) hostPort(n *node) {
	if n == nil {
		return
	}
	if scheme, rest, ok := strings.Cut(n.str(), "://"); ok {
		v.suggest(n, strings.TrimRight(rest, "/"), "%s has a scheme (%s), where only host:port is wanted",
			quote(n.str()), quote(scheme))
		return
	}
	colon := strings.LastIndexByte(n.str(), ':')
	if colon < 0 {
		v.suggest(n, n.str()+":7233", "%s has no port", quote(n.str()))
		return
	}
	host, port := n.str()[:colon], n.str()[colon+1:]
	number, err := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || number == 0 || strconv.FormatUint(number, 10) != port:
		v.errorf(n, "%s: the port is not a number from 1 to 65535", quote(n.str()))
	case !hostPattern().MatchString(host) && !isBracketed(host):
		v.errorf(n, "%s is not host:port: the host has letters, digits, dots and hyphens, or is an IPv6 address "+
			"in brackets", quote(n.str()))
	}
}

func isBracketed(host string) bool {
	inner, ok := strings.CutPrefix(host, "[")
	inner, ok2 := strings.CutSuffix(inner, "]")
	address, err := netip.ParseAddr(inner)
	return ok && ok2 && err == nil && address.Is6() && address.Zone() == ""
}

// resourceTemplate checks what can be known of a template here. Which kinds are allowed is the bot's configuration.
func (v *validator) resourceTemplate(n *node, t *WorkerResourceTemplate) {
	if name := v.text(v.metadata(n), "name"); name != nil && v.subdomain(name, "a name") {
		v.taken(name)
	}
	spec := v.require(n, "spec")
	if spec == nil {
		return
	}
	ref := v.oneOf(spec, "workerDeploymentRef", "temporalWorkerDeploymentRef")
	if ref.present() {
		v.reference(ref, "a worker deployment's name")
	}
	v.versionStates(spec.get("versions"))
	template := v.require(spec, "template")
	if template == nil {
		return
	}
	if template.kind != objectNode {
		v.errorf(template, "expected %s, got %s", objectNode, template.kind)
		return
	}
	for _, key := range []string{"apiVersion", "kind"} {
		if f := v.text(template, key); f != nil && f.kind != stringNode {
			v.errorf(f, "expected %s, got %s", stringNode, f.kind)
		}
	}
	for _, key := range []string{"name", "namespace"} {
		if f := template.at("metadata", key); f.present() && !(f.kind == stringNode && f.text == "") {
			v.errorf(f, "is made up for every version: remove it")
		}
	}
	v.injected(template.get("spec"))
	v.resourceHints(template)
	if f := spec.get("applyTo"); f.present() && !t.Spec.Resource().Scales {
		v.warnf(f, "has no effect on an object that scales no version: every version gets it. Remove it")
	}
}

// injected checks the places of a template that are filled in for every version. They are marked by an empty value, and
// nothing else may stand there.
func (v *validator) injected(spec *node) {
	if f := spec.get("minReplicas"); f != nil && f.kind == numberNode && f.text == "0" {
		v.errorf(f, "0 is not possible: a version at 0 replicas loses its pollers")
	}
	v.scaleTargets(spec)
	if f := spec.at("selector", "matchLabels"); f != nil {
		v.filledIn(f)
	}
	for _, metric := range spec.get("metrics").items() {
		labels := metric.at("external", "metric", "selector", "matchLabels")
		for _, key := range []string{"temporal_namespace", "temporal_worker_build_id",
			"temporal_worker_deployment_name"} {
			if f := labels.get(key); f != nil {
				v.errorf(f, "is filled in for every version: remove it")
			}
		}
	}
	for _, trigger := range spec.get("triggers").items() {
		if trigger.get("type").str() != "temporal" {
			continue
		}
		for _, key := range []string{"namespace", "workerDeploymentBuildId", "workerDeploymentName"} {
			if f := trigger.at("metadata", key); f != nil && f.kind != nullNode &&
				!(f.kind == stringNode && f.text == "") {
				v.errorf(f, `is filled in for every version: write ""`)
			}
		}
	}
}

// scaleTargets looks at every scaleTargetRef, at any depth and in lists too, since that is where they are filled in.
func (v *validator) scaleTargets(n *node) {
	if n == nil {
		return
	}
	for _, k := range n.kids {
		if n.kind == objectNode && k.key == "scaleTargetRef" {
			v.filledIn(k)
			continue
		}
		v.scaleTargets(k)
	}
}

// filledIn wants {}.
func (v *validator) filledIn(n *node) {
	switch {
	case n.kind == nullNode:
		v.warnf(n, "is filled in for every version only where it is {}, and here is nothing")
	case n.kind != objectNode || len(n.kids) > 0:
		v.errorf(n, "is filled in for every version: write {}")
	}
}

func (v *validator) waiver(n *node) {
	if name := v.text(v.metadata(n), "name"); name != nil {
		v.subdomain(name, "a name")
	}
	spec := v.require(n, "spec")
	if spec == nil {
		return
	}
	for _, key := range []string{"rule", "reason", "approver"} {
		v.text(spec, key)
	}
	for _, key := range []string{"rule", "approver"} {
		v.printable(spec.get(key))
	}
	v.require(spec, "expiresAt")
	scope := spec.get("scope")
	if f := scope.get("environment"); f.present() && f.str() != "" {
		v.label(f, "an environment's name")
	}
	if f := scope.get("deployment"); f.present() && f.str() != "" {
		v.deploymentRef(f)
	}
}

// deploymentRef checks a worker deployment's name in Temporal.
func (v *validator) deploymentRef(n *node) {
	namespace, name, ok := strings.Cut(n.str(), "/")
	if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Label(name)) > 0 {
		v.errorf(n, "%s is not of the form namespace/name", quote(n.str()))
	}
}
