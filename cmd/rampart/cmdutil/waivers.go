package cmdutil

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/lint"
)

// strayWaiver is what is wrong with a waiver in a file that is among the specs of no environment.
const strayWaiver = "no environment reads this waiver: add the file to the specs of one"

// waiverAt is a waiver of the folder, and where it is.
type waiverAt struct {
	file      string
	line      int
	ruleLine  int
	scopeLine int
	// waiver is nil if it has errors.
	waiver *v1alpha1.Waiver
	// environments are the names of those that read the file.
	environments []string
}

// LoadWaivers reads the waivers of the whole folder, also those that no environment reads, and adds the warnings of
// UnreadPolicies to the world. It leaves outputs out.
func (s *Specs) LoadWaivers() error {
	unread, err := s.UnreadPolicies()
	if err != nil {
		return err
	}
	s.World.Problems = append(s.World.Problems, unread...)
	files, err := FilesBelow(s.Base)
	if err != nil {
		return err
	}
	for _, file := range files {
		if s.isOutput(file) {
			continue
		}
		text, err := s.read(file)
		if err != nil {
			return err
		}
		if bytes.Contains([]byte(text), []byte(v1alpha1.KindWaiver)) {
			s.waivers = append(s.waivers, s.waiversIn(file, text)...)
		}
	}
	return nil
}

func (s *Specs) waiversIn(file, text string) []waiverAt {
	var out []waiverAt
	documents, _ := v1alpha1.Decode(file, []byte(text))
	for i := range documents {
		d := &documents[i]
		if d.Kind != v1alpha1.KindWaiver || d.APIVersion != v1alpha1.RampartAPIVersion {
			continue
		}
		w := waiverAt{file: file, line: d.Line, environments: s.readers(file)}
		w.waiver, _ = d.Object.(*v1alpha1.Waiver)
		w.ruleLine, _ = d.Position("spec.rule")
		w.scopeLine, _ = d.Position("spec.scope.environment")
		out = append(out, w)
	}
	return out
}

func (s *Specs) isOutput(file string) bool {
	return slices.ContainsFunc(s.World.Environments, func(env rollout.EnvironmentWorld) bool {
		return strings.HasPrefix(file, path.Clean(env.Environment.Output.Path)+"/")
	})
}

// readers are the environments that read a file.
func (s *Specs) readers(file string) []string {
	var out []string
	for _, env := range s.World.Environments {
		if matchesAny(env.Environment.Specs, file) {
			out = append(out, env.Environment.Name)
		}
	}
	return out
}

// UselessWaivers warns of waivers that cannot have an effect on any worker deployment. No environment reads them, or
// they are about an environment that does not read them, or about a rule that no policy there has.
func UselessWaivers(s Specs, judges *Judges) []v1alpha1.Problem {
	var out []v1alpha1.Problem
	for _, w := range s.waivers {
		warn := func(line int, field, format string, args ...any) {
			out = append(out, v1alpha1.Problem{Severity: v1alpha1.Warning, File: s.DisplayPath(w.file), Line: line,
				Path: field, Message: fmt.Sprintf(format, args...)})
		}
		if len(w.environments) == 0 {
			warn(w.line, "", strayWaiver)
			continue
		}
		if w.waiver == nil || !slices.ContainsFunc(s.World.Environments, func(env rollout.EnvironmentWorld) bool {
			return slices.Contains(w.environments, env.Environment.Name)
		}) {
			continue // its errors are said; or none of its environments is asked about
		}
		if scope := w.waiver.Spec.Scope.Environment; scope != "" && !slices.Contains(w.environments, scope) {
			warn(w.scopeLine, "spec.scope.environment",
				"waiver %s has no effect: it is about %s, and the file is read by %s",
				w.waiver.Metadata.Name, scope, strings.Join(w.environments, ", "))
			continue
		}
		if near, unknown := unknownRule(s.World.Environments, w, judges); unknown {
			message := fmt.Sprintf("waiver %s has no effect: no policy has a rule %s", w.waiver.Metadata.Name,
				w.waiver.Spec.Rule)
			if near != "" {
				message += fmt.Sprintf(" (did you mean %s?)", near)
			}
			warn(w.ruleLine, "spec.rule", "%s; if it is one of the bot's own, give the flags of its policies", message)
		}
	}
	return out
}

// unknownRule reports whether no policy that a waiver could be about has its rule, and which rule may have been meant.
func unknownRule(environments []rollout.EnvironmentWorld, w waiverAt, judges *Judges) (near string, unknown bool) {
	var known []string
	asked := false
	for _, env := range environments {
		name, scope := env.Environment.Name, w.waiver.Spec.Scope.Environment
		if !slices.Contains(w.environments, name) || scope != "" && scope != name {
			continue
		}
		names, all := lint.RuleNames(judges.config(env, judges.Pinned()))
		if !all || slices.Contains(names, w.waiver.Spec.Rule) {
			return "", false
		}
		asked, known = true, append(known, names...)
	}
	return v1alpha1.Closest(w.waiver.Spec.Rule, known), asked
}
