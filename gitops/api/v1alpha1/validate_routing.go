package v1alpha1

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

var (
	// folderPattern is what a build ID with files can be: it is the name of their folder.
	folderPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9._]{0,254}$`)
	})
	// blobPattern is a Git blob's hash.
	blobPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`) })
)

// routing checks a record that a person may have edited. Names in it become paths, so they are checked as paths.
func (v *validator) routing(n *node, r *Routing) {
	v.metadata(n)
	spec := v.require(n, "spec")
	if spec == nil {
		return
	}
	if f := v.text(spec, "workerDeployment"); f != nil {
		v.deploymentRef(f)
	}
	for _, key := range []string{"temporalNamespace", "environment", "managerIdentity"} {
		v.printable(spec.get(key))
	}
	if f := spec.get("specPath"); f.present() && f.str() != "" && !isInside(f.str()) {
		v.errorf(f, "%s is not a path inside the repository", quote(f.str()))
	}
	if f := spec.get("minReader"); f.present() && r.Spec.MinReader < 1 {
		v.errorf(f, "must be at least 1, got %d", r.Spec.MinReader)
	}
	desired := v.require(spec, "desired")
	v.buildID(v.require(desired, "current")) // which a person who misspells it means
	v.ramp(desired.get("ramping"), r.Spec.Desired.Ramping)
	if decided := spec.get("decided"); decided.present() {
		v.buildID(decided.get("current"))
		v.ramp(decided.get("ramping"), r.Spec.Decided.Ramping)
	}
	if basis := spec.get("basis"); basis.present() {
		v.buildID(basis.get("current"))
		v.ramp(basis.get("ramping"), r.Spec.Basis.Ramping)
	}
	if target := spec.get("target"); target.present() {
		v.buildID(v.text(target, "buildID"))
		if f := target.get("attempt"); f.present() && r.Spec.Target.Attempt < 0 {
			v.errorf(f, "must not be negative")
		}
		v.recordedGates(target.get("gates"))
		v.recordedQueues(target.get("leavesBehind"))
	}
	v.recordedQueues(spec.get("proposal").get("leavesBehind"))
	v.versions(spec.get("versions"))
	for _, key := range []string{"promotions", "bars", "setAside"} {
		for _, item := range spec.get(key).items() {
			v.buildID(v.require(item, "buildID"))
		}
	}
}

func (v *validator) versions(list *node) {
	v.unique(list.items(), "buildID", "version")
	for _, n := range list.items() {
		v.matches(v.text(n, "buildID"), folderPattern(),
			"a build ID with a folder: letters, digits, . _ -, none of these first")
		if f := n.get("deployment"); f.present() && f.str() != "" {
			v.subdomain(f, "a Deployment's name")
		}
		v.replicas(n.get("replicas"))
		v.replicas(n.get("attempts"))
		v.replicas(n.get("turnedBack"))
		v.require(n, "guard")
		v.evacuations(n.get("evacuations"))
		v.require(n, "buildIDFrom")
		v.unique(n.get("resources").items(), "template", "template")
		for _, r := range n.get("resources").items() {
			if name := v.text(r, "template"); name != nil && v.subdomain(name, "a name") {
				v.taken(name)
			}
		}
		for _, file := range n.get("files").fields() {
			if !isInside(file.key) {
				v.errorf(file, "not the name of a file inside the version's folder")
			}
			if file.present() {
				v.matches(file, blobPattern(), "the hash of a Git blob")
			}
		}
	}
}

// buildID checks one that Temporal gave, or may be given.
func (v *validator) buildID(n *node) {
	v.printable(n)
}

func (v *validator) ramp(n *node, r *DesiredRamp) {
	if !n.present() {
		return
	}
	v.buildID(v.require(n, "buildID"))
	if p := v.require(n, "percentage"); p != nil && (r.Percentage < 0 || r.Percentage > 100) {
		v.errorf(p, "%s is not between 0 and 100", p.text)
	}
}

// MayBeRecorded says whether a record can name a path: it is one inside the repository, in UTF-8 and without control
// characters.
func MayBeRecorded(p string) bool { return isInside(p) }

// isInside says whether a path is clean, relative and stays where it starts.
func isInside(p string) bool {
	return p != "." && path.Clean(p) == p && !strings.HasPrefix(p, "/") && !leaves(p) && !strings.Contains(p, `\`) &&
		utf8.ValidString(p) && !strings.ContainsFunc(p, unicode.IsControl) &&
		!slices.ContainsFunc(strings.Split(p, "/"), func(s string) bool { return strings.EqualFold(s, ".git") })
}
