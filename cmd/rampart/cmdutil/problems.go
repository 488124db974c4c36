package cmdutil

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// SayWorldProblems says what is wrong with the repository's files, which may be why something is missing, and returns
// err as it is.
func (a *App) SayWorldProblems(world rollout.World, err error) error {
	for _, p := range WorldProblems(world) {
		a.Say("%s", ProblemLine(p))
	}
	return err
}

// SayProblems says what is wrong, and returns an error with the consequence if one of the problems is an Error.
func (a *App) SayProblems(problems []v1alpha1.Problem, consequence string) error {
	for _, p := range problems {
		a.Say("%s", ProblemLine(p))
	}
	if v1alpha1.HasErrors(problems) {
		return errors.New(consequence)
	}
	return nil
}

// SortProblems sorts problems by file, line, column, path and message.
func SortProblems(list []v1alpha1.Problem) {
	slices.SortStableFunc(list, func(a, b v1alpha1.Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column,
			strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
}

// WorldProblems are the problems of a world's files, sorted and each once.
func WorldProblems(world rollout.World) []v1alpha1.Problem {
	s := Specs{World: world}
	return s.Problems()
}

// ProblemLine gives the problem as an editor can jump to it; a warning says that it is one.
func ProblemLine(p v1alpha1.Problem) string {
	if p.Severity == v1alpha1.Warning {
		if p.Path != "" {
			p.Message = p.Path + ": " + p.Message
		}
		p.Path = "warning"
	}
	return printable.Line(p.String())
}
