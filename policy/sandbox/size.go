package sandbox

import (
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Evaluating goes deeper with each term of a rule, each rule that it leads to, and each value within a value; a stack
// that is full is the end of the process. Compiling takes twice as long with each comprehension within another. So both
// are bounded by what is written. Policies of people are far below.
const (
	// maxParsing is how deep the parser may go: about ten for each bracket within another.
	maxParsing = 1000
	// maxClosures is how many comprehensions, templates and every may be within each other.
	maxClosures = 6
	// maxTerms of one rule. A literal without variables counts once.
	maxTerms = 10_000
	// maxStack is how many terms may be in rules that lead to each other.
	maxStack = 30_000
)

// CheckParsing refuses source that is nested too deep to be parsed.
func CheckParsing(path, source string) error {
	_, _, errs := ast.NewParser().WithMaxRecursionDepth(maxParsing).WithFilename(path).WithReader(strings.NewReader(source)).
		WithCapabilities(Capabilities()).WithRegoVersion(ast.RegoV1).Parse()
	for _, err := range errs {
		if err.Message == ast.ErrMaxParsingRecursionDepthExceeded.Error() {
			return &ast.Error{Code: ast.ParseErr, Location: err.Location, Message: "nested too deep, or too long an expression"}
		}
	}
	return nil
}

// CheckSize refuses rules that are too large to be evaluated.
func CheckSize(m *ast.Module) error {
	for _, r := range m.Rules {
		terms, closures := sizeOf(r)
		switch {
		case terms > maxTerms:
			return tooMuch(r, "a rule with more than %d terms", maxTerms)
		case closures > maxClosures:
			return tooMuch(r, "more than %d comprehensions, templates or every within each other", maxClosures)
		}
	}
	return nil
}

func tooMuch(r *ast.Rule, format string, most int) error {
	return &ast.Error{Code: ast.CompileErr, Location: r.Location, Message: fmt.Sprintf(format, most)}
}

// sizeOf counts the terms of a rule, and how many closures are within each other.
func sizeOf(r *ast.Rule) (terms, closures int) {
	var walk func(x any, depth int)
	walk = func(x any, depth int) {
		closures = max(closures, depth)
		ast.NewGenericVisitor(func(y any) bool {
			switch v := y.(type) {
			case *ast.Term:
				terms++
				return groundLiteral(v) || terms > maxTerms
			case *ast.Expr:
				terms++
			case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension, *ast.TemplateString, *ast.Every:
				if y != x {
					walk(y, depth+1)
					return true
				}
			}
			return terms > maxTerms
		}).Walk(x)
	}
	walk(r, 0)
	return terms, closures
}

// groundLiteral reports whether a term is a literal whose evaluation makes nothing.
func groundLiteral(t *ast.Term) bool {
	switch t.Value.(type) {
	case *ast.Array, ast.Object, ast.Set:
		return t.Value.IsGround()
	}
	return false
}

// CheckDepth is a stage of compiling that refuses rules that lead to rules that lead to rules without end.
func CheckDepth(c *ast.Compiler) *ast.Error {
	sorted, ok := c.Graph.Sort()
	if !ok {
		return nil // it is recursive, which the compiler refuses
	}
	depths := map[*ast.Rule]int{}
	for _, node := range sorted {
		rule, ok := node.(*ast.Rule)
		if !ok {
			continue
		}
		below := 0
		for next := range c.Graph.Dependencies(rule) {
			if r, ok := next.(*ast.Rule); ok {
				below = max(below, depths[r])
			}
		}
		terms, _ := sizeOf(rule)
		if depths[rule] = terms + below; depths[rule] > maxStack {
			return &ast.Error{Code: ast.CompileErr, Location: rule.Location,
				Message: fmt.Sprintf("rules that lead to rules with more than %d terms together", maxStack)}
		}
	}
	return nil
}
