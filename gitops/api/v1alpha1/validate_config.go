package v1alpha1

import (
	"path"
	"regexp"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"
)

// maxEnvironments of a repository.
const maxEnvironments = 1000

func (v *validator) config(n *node, c *Config) {
	if n.get("metadata") != nil {
		v.metadata(n)
	}
	spec := v.require(n, "spec")
	if spec == nil {
		return
	}
	list := v.require(spec, "environments")
	switch {
	case list != nil && len(list.items()) == 0:
		v.errorf(list, "at least one environment is required")
	case len(list.items()) > maxEnvironments:
		v.errorf(list, "more than %d environments", maxEnvironments)
		return
	}
	v.unique(list.items(), "name", "environment")
	for i, e := range list.items() {
		if i < len(c.Spec.Environments) {
			v.environment(e, &c.Spec.Environments[i])
		}
	}
	v.outputs(list.items(), c.Spec.Environments)
}

func (v *validator) environment(n *node, e *Environment) {
	if name := v.text(n, "name"); name != nil {
		v.label(name, "an environment's name")
	}
	if specs := v.require(n, "specs"); specs != nil && len(specs.items()) == 0 {
		v.errorf(specs, "at least one path is required")
	}
	for _, key := range []string{"specs", "policies", "data"} {
		for _, glob := range n.get(key).items() {
			v.glob(glob)
		}
	}
	for _, file := range n.get("helm").get("values").items() {
		v.valuesFile(file)
	}
	output := v.require(n, "output")
	if p := v.text(output, "path"); p != nil {
		v.outputPath(p, &e.Output)
	}
	if branch := output.get("branch"); branch.present() && branch.str() != "" && !isBranch(branch.str()) {
		v.errorf(branch, "%s is not a branch's name", quote(branch.str()))
	}
	if namespace := n.get("namespace"); namespace.present() && namespace.str() != "" {
		v.label(namespace, "a namespace")
	}
	v.printable(n.get("managerIdentity"))
	kinds := n.get("resourceKinds")
	if kinds.present() && e.ResourceKinds == nil {
		e.ResourceKinds = []string{} // none, which is not the same as no list
	}
	for _, kind := range kinds.items() {
		if kind.present() && !resourceKind.MatchString(kind.str()) {
			v.errorf(kind, "%s is not a kind, or Kind.group", quote(kind.str()))
		}
	}
}

var resourceKind = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(\.[a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$`)

// glob checks a pattern of paths inside the repository.
func (v *validator) glob(n *node) {
	if !n.present() {
		return
	}
	switch p := n.str(); {
	case p == "":
		v.errorf(n, "must not be empty")
	case strings.HasPrefix(p, "/"), leaves(p), strings.HasPrefix(p, "./"), strings.Contains(p, "//"):
		v.errorf(n, "%s is not a path from the repository's root, without ./ and ../", quote(p))
	case !doublestar.ValidatePattern(p):
		v.errorf(n, "%s is not a valid path pattern", quote(p))
	case alternatives(p) > maxAlternatives:
		v.errorf(n, "has more than %d combinations of alternatives in braces: write several patterns", maxAlternatives)
	}
}

// valuesFile checks a path of a chart's folder, or, after a slash, of the repository.
func (v *validator) valuesFile(n *node) {
	if !n.present() {
		return
	}
	p := strings.TrimPrefix(n.str(), "/")
	if p == "" || strings.HasPrefix(p, "/") || path.Clean(p) != p || p == "." || leaves(p) {
		v.errorf(n, "%s is not the path of a file from the chart's folder, or, after a slash, from the repository's "+
			"root, without ./ and ../", quote(n.str()))
	}
}

// maxAlternatives is how many combinations of {a,b} a pattern may have: to match a path, each may have to be tried.
const maxAlternatives = 256

// alternatives is how many combinations a pattern's braces have, or more.
func alternatives(pattern string) int {
	all, open := 1, []int{}
	for _, c := range pattern {
		switch {
		case c == '{':
			open = append(open, 1)
		case c == ',' && len(open) > 0:
			open[len(open)-1]++
		case c == '}' && len(open) > 0:
			if all *= open[len(open)-1]; all > maxAlternatives {
				return all
			}
			open = open[:len(open)-1]
		}
	}
	return all
}

func leaves(p string) bool {
	return p == ".." || strings.HasPrefix(p, "../") || strings.HasSuffix(p, "/..") || strings.Contains(p, "/../")
}

// outputPath checks where manifests are written, and takes a slash at the end away.
func (v *validator) outputPath(n *node, out *Output) {
	p := strings.TrimSuffix(n.str(), "/")
	clean := path.Clean(p)
	switch {
	case strings.HasPrefix(p, "/"), p == "", leaves(p), strings.Contains(p, `\`):
		v.errorf(n, "%s is not a folder inside the repository", quote(n.str()))
	case clean == ".":
		v.errorf(n, "the repository's root can't be the output: name a folder")
	case clean != p:
		v.suggest(n, clean, "%s is not written in its shortest form", quote(n.str()))
	case strings.ContainsAny(p, "*?[]{}") || strings.ContainsFunc(p, unicode.IsControl):
		v.errorf(n, "%s has characters that a folder should not have", quote(n.str()))
	default:
		for part := range strings.SplitSeq(p, "/") {
			if strings.EqualFold(part, ".git") {
				v.errorf(n, "%s is inside Git's own folder", quote(n.str()))
			}
		}
	}
	out.Path = p
}

// outputs have to be disjoint: each environment removes what it did not write. Two that name different branches can't
// meet.
func (v *validator) outputs(nodes []*node, all []Environment) {
	for i := range min(len(nodes), len(all)) {
		n := nodes[i].at("output", "path")
		if !n.present() || all[i].Output.Path == "" {
			continue
		}
		for j := range i {
			a, b := all[j].Output, all[i].Output
			if a.Path == "" || a.Branch != b.Branch && a.Branch != "" && b.Branch != "" {
				continue
			}
			if a.Path == b.Path || strings.HasPrefix(a.Path, b.Path+"/") || strings.HasPrefix(b.Path, a.Path+"/") {
				v.errorf(n, "%s overlaps the output of environment %s (%s)", quote(b.Path), quote(all[j].Name),
					quote(a.Path))
				break
			}
		}
	}
}

// isBranch holds git-check-ref-format's rules for a branch.
func isBranch(s string) bool {
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return !strings.HasPrefix(s, "-") && !strings.HasSuffix(s, ".") && s != "@" && s != "HEAD" &&
		!strings.Contains(s, "..") && !strings.Contains(s, "@{") && !strings.ContainsAny(s, " ~^:?*[\\") &&
		!strings.ContainsFunc(s, unicode.IsControl)
}
