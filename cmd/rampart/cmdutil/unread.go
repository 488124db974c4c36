package cmdutil

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// ourPackage begins the packages that the bot asks.
var ourPackage = regexp.MustCompile(`(?m)^[ \t]*package[ \t]+rampart\.`)

// UnreadPolicies warns of policies, and of data files with parameters of the library, that no environment of the folder
// reads. What they are meant to forbid is allowed.
func (s *Specs) UnreadPolicies() ([]v1alpha1.Problem, error) {
	files, err := FilesBelow(s.Base, ".rego", ".yaml", ".yml", ".json")
	if err != nil {
		return nil, err
	}
	var out []v1alpha1.Problem
	for _, file := range files {
		field, what := "data", "parameters"
		if path.Ext(file) == ".rego" {
			field, what = "policies", "a policy"
		}
		if s.isOutput(file) || s.rules(field, file) {
			continue
		}
		text, err := s.read(file)
		if err != nil {
			return nil, err
		}
		if field == "policies" && !ourPackage.MatchString(text) || field == "data" && !hasParameters(text) {
			continue
		}
		out = append(out, v1alpha1.Problem{Severity: v1alpha1.Warning, File: file,
			Message: "no environment reads " + what +
				" from this file: name it in rampart.yaml, in spec.environments[]." + field})
	}
	return out, nil
}

// rules reports whether an environment reads a file as policies, or as data.
func (s *Specs) rules(field, file string) bool {
	return slices.ContainsFunc(s.World.Environments, func(env rollout.EnvironmentWorld) bool {
		globs := env.Environment.Data
		if field == "policies" {
			globs = env.Environment.Policies
		}
		return matchesAny(globs, file)
	})
}

// hasParameters reports whether a text is data with parameters of the library.
func hasParameters(text string) bool {
	if !strings.Contains(text, "rampart") {
		return false
	}
	var data struct {
		Rampart struct {
			Config map[string]any `yaml:"config"`
		} `yaml:"rampart"`
	}
	return yaml.Unmarshal([]byte(text), &data) == nil && len(data.Rampart.Config) > 0
}
