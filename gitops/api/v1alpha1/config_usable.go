package v1alpha1

import (
	"regexp"
	"strconv"
)

// ConfiguredEnvironment is one environment of a Config, and whether it can be used.
type ConfiguredEnvironment struct {
	Environment
	// Problem is the first error of the environment; nil: it can be used.
	Problem *Problem
	// NameProblem says that one of its errors is about its name: which environment is meant is not known.
	NameProblem bool
}

// environmentPath is the beginning of the path of what is wrong with one environment.
var environmentPath = regexp.MustCompile(`^spec\.environments\[([0-9]+)\](\.name$)?`)

// Configured says which environments of a document can be used. whole is an error that is about all of them: then there
// are none. Another document than a Config gives neither.
func (d *Document) Configured() (environments []ConfiguredEnvironment, whole *Problem) {
	config, _ := d.Object.(*Config)
	if config == nil {
		config = d.flawed
	}
	if config == nil {
		return nil, firstError(d.Problems)
	}
	environments = make([]ConfiguredEnvironment, len(config.Spec.Environments))
	named := map[string]int{}
	for i, e := range config.Spec.Environments {
		environments[i].Environment, environments[i].NameProblem = e, e.Name == ""
		named[e.Name]++
	}
	for _, p := range d.Problems {
		if p.Severity != Error {
			continue
		}
		at := environmentPath.FindStringSubmatch(p.Path)
		if at == nil {
			return nil, &p
		}
		i, err := strconv.Atoi(at[1])
		if err != nil || i >= len(environments) {
			return nil, &p
		}
		e := &environments[i]
		if e.Problem == nil {
			e.Problem = &p
		}
		e.NameProblem = e.NameProblem || at[2] != ""
	}
	shareNames(environments, named)
	return environments, nil
}

// shareNames: of environments with one name it is not known which is meant, whichever of them the error is about.
func shareNames(environments []ConfiguredEnvironment, named map[string]int) {
	for i := range environments {
		e := &environments[i]
		if named[e.Name] < 2 {
			continue
		}
		e.NameProblem = true
		for k := 0; k < len(environments) && e.Problem == nil; k++ {
			if environments[k].Name == e.Name {
				e.Problem = environments[k].Problem
			}
		}
	}
}

func firstError(problems []Problem) *Problem {
	for i := range problems {
		if problems[i].Severity == Error {
			return &problems[i]
		}
	}
	return nil
}
