package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// Bounds of names: a build ID is a label value; a Deployment's name leaves room for the pods' suffixes. The lengths
// and the form of names are those of the in-cluster controller, so that its objects can be taken over.
const (
	maxBuildID        = 63
	maxDeploymentName = 47
)

var (
	notBuildID = regexp.MustCompile(`[^a-zA-Z0-9._-]+`)
	notDNS     = regexp.MustCompile(`[^a-zA-Z0-9-]+`)
	// imageReference is a container image's reference, by the grammar of the OCI distribution's reference package. It
	// has a registry with a port, a path in lower case, a tag, a digest.
	imageReference = regexp.MustCompile(
		`^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::[0-9]+)?/)?` +
			`[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*` +
			`(?::\w[\w.-]{0,127})?(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$`)
)

// TemplateHash is SHA-256, in hex, over the canonical JSON of the spec's pod template as the user wrote it (with
// pools: of all of them). It depends on no library's types, so no upgrade changes it.
func TemplateHash(spec v1alpha1.WorkerDeploymentSpec) string {
	h := sha256.New()
	h.Write(spec.Template.Raw)
	for _, p := range slices.SortedFunc(slices.Values(spec.Pools), func(a, b v1alpha1.Pool) int {
		return strings.Compare(a.Name, b.Name)
	}) {
		fmt.Fprintf(h, "\n%s\n%s", p.Name, p.Template.Raw)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// JudgedBy is the beginning of the SHA-256, in hex, of what a rollout is judged by beside its steps' shares and pauses.
// That is its gates and its analysis; "" if it has none.
func JudgedBy(r v1alpha1.RolloutStrategy) string {
	by := struct {
		Gates    []*v1alpha1.Gate
		Analysis *v1alpha1.Analysis
	}{Gates: []*v1alpha1.Gate{r.Gate}, Analysis: r.Analysis}
	for _, s := range r.Steps {
		by.Gates = append(by.Gates, s.Gate)
	}
	if by.Analysis == nil && !slices.ContainsFunc(by.Gates, func(g *v1alpha1.Gate) bool { return g != nil }) {
		return ""
	}
	text, err := json.Marshal(by)
	if err != nil { // an input of a gate that is not JSON: it was refused when it was decoded
		text = []byte(err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// BuildIDFor gives the build ID of a spec. It is the custom one; else that of a recorded version made from the same
// template; else a new one, <image tag or digest>-<hex of the template hash>, long enough not to meet a recorded one.
// The second result says where it comes from.
func BuildIDFor(spec v1alpha1.WorkerDeploymentSpec,
	recorded []v1alpha1.RecordedVersion) (string, v1alpha1.BuildIDSource) {
	if id := CleanBuildID(spec.WorkerOptions.UnsafeCustomBuildID); id != "" {
		return id, v1alpha1.BuildIDCustom
	}
	hash := TemplateHash(spec)
	for _, v := range slices.Backward(recorded) {
		if v.TemplateHash == hash && v.BuildIDFrom != v1alpha1.BuildIDCustom {
			return v.BuildID, v1alpha1.BuildIDTemplate
		}
	}
	prefix := imagePrefix(spec.Template.FirstImage)
	for n := 8; ; n += 8 {
		id := joinBuildID(prefix, hash[:n])
		if n == len(hash) || FindVersion(recorded, id) == nil {
			return id, v1alpha1.BuildIDTemplate
		}
	}
}

// ControllerBuildID is the build ID that the in-cluster controller gives a spec. It is the custom one; else <image tag
// or digest>-<four characters>, which are the template's FNV-1a hash modulo 10000, its digits written in Kubernetes'
// alphabet without vowels. Two templates can share one.
func ControllerBuildID(spec v1alpha1.WorkerDeploymentSpec) string {
	if id := CleanBuildID(spec.WorkerOptions.UnsafeCustomBuildID); id != "" {
		return id
	}
	h := fnv.New32a()
	h.Write(spec.Template.ControllerJSON())
	hash, width := h.Sum32()%10000, 4
	image := spec.Template.FirstImage
	if image == "" {
		width = 10
	}
	text := []byte(fmt.Sprintf("%0*d", width, hash))
	for i, digit := range text {
		text[i] = "456789bcdf"[digit-'0']
	}
	if image == "" {
		return string(text)
	}
	return CleanBuildID(prefixOf(imagePrefix(image), 58) + "-" + string(text))
}

// joinBuildID cuts the prefix, never the suffix, and cleans the whole.
func joinBuildID(prefix, suffix string) string {
	if len(suffix) >= maxBuildID {
		return suffix[:maxBuildID]
	}
	prefix = strings.TrimLeft(notBuildID.ReplaceAllString(prefix, "-"), "-._")
	return CleanBuildID(prefixOf(prefix, maxBuildID-len(suffix)-1) + "-" + suffix)
}

// CleanBuildID replaces each run of characters that a build ID may not have by one hyphen. It cuts to 63 bytes and
// trims separators at both ends. It is empty if nothing is left.
//
// (The in-cluster controller cuts last. That may leave a separator at the end, which a label value may not have.)
func CleanBuildID(s string) string {
	return trimSeparators(prefixOf(trimSeparators(notBuildID.ReplaceAllString(s, "-")), maxBuildID))
}

func trimSeparators(s string) string { return strings.Trim(s, "-._") }

// imagePrefix is the tag of an image reference, else its digest's hex, else its path without the registry. A text that
// is not an image reference is taken as it is.
func imagePrefix(image string) string {
	if !imageReference.MatchString(image) {
		return image
	}
	name, digest, hasDigest := strings.Cut(image, "@")
	slash := strings.LastIndexByte(name, '/')
	if colon := strings.LastIndexByte(name, ':'); colon > slash {
		return name[colon+1:]
	}
	if hasDigest {
		_, hexDigits, _ := strings.Cut(digest, ":")
		return hexDigits
	}
	first, rest, ok := strings.Cut(name, "/")
	if ok && (strings.ContainsAny(first, ".:") || first == "localhost") {
		return rest
	}
	return name
}

// DeploymentName is the name of a version's Kubernetes Deployment. It is <name>-<build ID>, shortened with a hash where
// it is longer than 47 bytes or where another one has it already.
func DeploymentName(name, buildID string, taken []string) string {
	full := name + "-" + buildID
	if len(full) <= maxDeploymentName {
		if n := dnsName(full); !slices.Contains(taken, n) {
			return n
		}
	}
	sum := sha256.Sum256([]byte(full))
	return dnsName(prefixOf(name, 10) + "-" + prefixOf(buildID, 10) + "-" + hex.EncodeToString(sum[:])[:10])
}

func prefixOf(s string, n int) string { return s[:min(len(s), n)] }

func dnsName(s string) string { return strings.ToLower(notDNS.ReplaceAllString(s, "-")) }

// PoolDeploymentName is the name of the Kubernetes Deployment of a version's pool.
func PoolDeploymentName(name, buildID, pool string, taken []string) string {
	return DeploymentName(name, buildID+"-"+pool, taken)
}

// PoolLabels are the labels by which a pool's Deployment and its pods are found. The name label differs from that of
// the version's first Deployment, whose selector must not find them. It has a dot, so that it cannot be another worker
// deployment's.
func PoolLabels(name, pool, buildID string) map[string]string {
	n := dnsName(name)
	if room := 63 - len(pool) - 1; len(n) > room {
		sum := sha256.Sum256([]byte(n))
		n = strings.Trim(prefixOf(n, max(room-9, 1)), "-") + "-" + hex.EncodeToString(sum[:])[:8]
	}
	return map[string]string{LabelDeploymentName: n + "." + pool, LabelBuildID: buildID, LabelPool: pool}
}

// PoolFile is the name of a pool's file below a version's folder.
func PoolFile(pool string) string { return pool + ".yaml" }

// SelectorLabels are the two labels by which a version's Deployment, its pods and its resources are found.
func SelectorLabels(name, buildID string) map[string]string {
	n := dnsName(name)
	if len(n) > 63 {
		n = strings.Trim(n[:63], "-")
	}
	return map[string]string{LabelDeploymentName: n, LabelBuildID: buildID}
}

// Labels and annotations of the in-cluster controller's objects.
const (
	LabelDeploymentName       = "temporal.io/deployment-name"
	LabelBuildID              = "temporal.io/build-id"
	LabelPool                 = "rampart.dev/pool"
	AnnotationConnectionHash  = "temporal.io/connection-spec-hash"
	AnnotationPodTemplateHash = "temporal.io/pod-template-spec-hash"
)

// Guards against pruning, and the annotation that makes a changed status a difference.
const (
	AnnotationArgoSync  = "argocd.argoproj.io/sync-options"
	AnnotationFluxPrune = "kustomize.toolkit.fluxcd.io/prune"
	// AnnotationHelmPolicy keeps an object that is no longer in the chart, or whose release is uninstalled.
	AnnotationHelmPolicy = "helm.sh/resource-policy"
	// AnnotationArgoIgnoreHealth keeps an object out of the health of ArgoCD's Application.
	AnnotationArgoIgnoreHealth = "argocd.argoproj.io/ignore-healthcheck"
	// AnnotationIgnoresHealth says that the bot added that one, and takes it away again.
	AnnotationIgnoresHealth = "rampart.dev/ignores-health"
	// AnnotationFluxSubstitute has Flux's post-build substitution leave an object as it is.
	AnnotationFluxSubstitute = "kustomize.toolkit.fluxcd.io/substitute"
	AnnotationStatusHash     = "rampart.dev/status-hash"
	AnnotationRetire         = "rampart.dev/retire"
	AnnotationReady          = "rampart.dev/ready"
	AnnotationHealth         = "rampart.dev/health"
	AnnotationReason         = "rampart.dev/reason"
	AnnotationTarget         = "rampart.dev/target"
	AnnotationCurrent        = "rampart.dev/current"
	AnnotationRamp           = "rampart.dev/ramp"
	// AnnotationSpecDigest is the digest of the spec that a status is about.
	AnnotationSpecDigest = "rampart.dev/spec-digest"
)
