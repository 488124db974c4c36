package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// mutant is one mistake that could be made in the code under test.
type mutant struct {
	n int
	// file and function are where it is. line is for people: the name of a mutant leaves it out.
	file, function string
	line           int
	// what is changed, as a person would say it. Two of the same words in one function are told apart by #2.
	what string
}

// name is what a mutant is called in the list of those that may live. It stays the same when lines move.
func (m mutant) name() string { return fmt.Sprintf("%s %s: %s", m.file, m.function, m.what) }

// switches is the file beside the rewritten ones: which mutant a test binary is, and what each kind of mutation does.
const switches = `package %s

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
)

var mutant = func() int {
	n, _ := strconv.Atoi(os.Getenv("` + which + `"))
	return n
}()

var mutantFile = func() *os.File {
	if name := os.Getenv("` + reach + `"); name != "" {
		f, err := os.Create(name)
		if err != nil {
			panic(err)
		}
		return f
	}
	return nil
}()

var mutantsSeen sync.Map

func mutantIs(n int) bool {
	if mutantFile != nil {
		if _, seen := mutantsSeen.LoadOrStore(n, true); !seen {
			fmt.Fprintln(mutantFile, n)
		}
	}
	return mutant == n
}

func mutantNegates(n int, c bool) bool { return c != mutantIs(n) }

func mutantDrops[S ~[]E, E any](first int, list S) S {
	for i := range list {
		if mutantIs(first + i) {
			return slices.Delete(slices.Clone(list), i, i+1)
		}
	}
	return list
}

func mutantSays[T ~string](n int, text, instead T) T {
	if mutantIs(n) {
		return instead
	}
	return text
}
`

// which is the variable that says which mutant a test binary is. reach is the one that names the file into which it
// writes what mutants its tests come by, a number a line.
const (
	which = "RAMPART_MUTANT"
	reach = "RAMPART_MUTANTS_REACHED"
)

// finder finds the mutants of a file, and rewrites it so that each can be switched on.
type finder struct {
	file   string
	src    string
	fset   *token.FileSet
	target target
	// function is where the walk is, and receivers the names there of values whose methods are checks. Deep says that
	// conditions are taken to pieces there.
	function  string
	receivers []string
	deep      bool
	first     int
	found     []mutant
	opens     []edit
	closes    []edit
}

type edit struct {
	at   int
	text string
}

// find gives the mutants of a file of a target, numbered from a first one. It also gives the file's text with all of
// them in it, and its package.
func find(t target, file, src string, first int) (found []mutant, rewritten, pkg string, err error) {
	f := &finder{file: file, src: src, fset: token.NewFileSet(), target: t, first: first}
	parsed, err := parser.ParseFile(f.fset, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, "", "", fmt.Errorf("parse %s: %w", file, err)
	}
	for _, d := range parsed.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			f.enter(fn)
			f.walk(fn.Body)
		}
	}
	return f.found, f.rewritten(), parsed.Name.Name, nil
}

// enter knows what a function is for.
func (f *finder) enter(fn *ast.FuncDecl) {
	f.function, f.receivers = fn.Name.Name, nil
	f.deep = fn.Type.Results != nil && f.text(fn.Type.Results) == f.target.decides
	if fn.Recv != nil && len(fn.Recv.List[0].Names) > 0 {
		of := strings.TrimPrefix(f.text(fn.Recv.List[0].Type), "*")
		f.function = of + "." + f.function
		if slices.Contains(f.target.checks, of) {
			f.receivers = []string{fn.Recv.List[0].Names[0].Name}
			f.deep = slices.Contains(f.target.deep, of)
		}
	}
}

func (f *finder) walk(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			f.startsChecks(n)
		case *ast.IfStmt:
			return f.inside(n.Cond, n.Init, n.Cond, n.Body, n.Else)
		case *ast.ForStmt:
			return f.inside(n.Cond, n.Init, n.Cond, n.Post, n.Body)
		case *ast.SwitchStmt:
			return f.cases(n)
		case *ast.ExprStmt:
			f.check(n)
		case *ast.ReturnStmt:
			f.answer(n)
		case *ast.CompositeLit:
			f.rows(n)
		case *ast.BinaryExpr, *ast.UnaryExpr:
			if !logical(n.(ast.Expr)) {
				return true
			}
			f.condition(n.(ast.Expr))
			return false
		}
		return true
	})
}

// inside walks the parts of a statement; cond is the part that is a condition.
func (f *finder) inside(cond ast.Expr, parts ...ast.Node) bool {
	for _, p := range parts {
		switch p {
		case nil:
		case cond:
			f.condition(cond)
		default:
			f.walk(p)
		}
	}
	return false
}

// logical reports whether an expression is a condition by its looks.
func logical(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.UnaryExpr:
		return e.Op == token.NOT
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND, token.LOR, token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
			return true
		}
	}
	return false
}

// condition negates a condition, and leaves out each part that it is made of.
func (f *finder) condition(e ast.Expr) {
	if p, ok := e.(*ast.ParenExpr); ok {
		f.condition(p.X)
		return
	}
	f.mutant(e, "negated: "+f.text(e))
	f.around(e, fmt.Sprintf("mutantNegates(%d, ", f.last()), ")")
	f.parts(e)
}

// parts leaves out what a condition is made of, where that is done: a part of "and" is then true, one of "or" false.
func (f *finder) parts(e ast.Expr) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		f.parts(e.X)
	case *ast.BinaryExpr:
		if e.Op != token.LAND && e.Op != token.LOR {
			f.walk(e.X)
			f.walk(e.Y)
			return
		}
		for _, part := range []ast.Expr{e.X, e.Y} {
			if same, ok := part.(*ast.BinaryExpr); ok && same.Op == e.Op {
				f.parts(part)
				continue
			}
			if f.deep {
				f.mutant(part, "without: "+f.text(part))
				open := map[token.Token]string{token.LAND: "(mutantIs(%d) || ", token.LOR: "(!mutantIs(%d) && "}[e.Op]
				f.around(part, fmt.Sprintf(open, f.last()), ")")
			}
			f.parts(part)
		}
	case *ast.UnaryExpr:
		f.parts(e.X)
	default:
		f.walk(e)
	}
}

// cases are the conditions of a switch: its cases themselves, or the values that it tells apart.
func (f *finder) cases(s *ast.SwitchStmt) bool {
	f.inside(nil, s.Init, s.Tag)
	for _, c := range s.Body.List {
		c := c.(*ast.CaseClause)
		for _, e := range c.List {
			if s.Tag == nil {
				f.condition(e)
				continue
			}
			f.mutant(e, "no case "+f.text(e))
			f.around(e, fmt.Sprintf("mutantSays(%d, ", f.last()), `, "no case")`)
		}
		for _, n := range c.Body {
			f.walk(n)
		}
	}
	return false
}

// rows are lists in the code: each is as good as each item in it.
func (f *finder) rows(l *ast.CompositeLit) {
	a, ok := l.Type.(*ast.ArrayType)
	if !ok || a.Len != nil || len(l.Elts) < 2 {
		return
	}
	first := f.first + len(f.found)
	for _, e := range l.Elts {
		f.mutant(e, "removed: "+f.text(e))
	}
	f.around(l, fmt.Sprintf("mutantDrops(%d, ", first), ")")
}

// startsChecks knows a value whose methods are checks by its type, where it is made.
func (f *finder) startsChecks(a *ast.AssignStmt) {
	for i, e := range a.Rhs {
		l, ok := e.(*ast.CompositeLit)
		if !ok || l.Type == nil || !slices.Contains(f.target.checks, f.text(l.Type)) {
			continue
		}
		f.receivers = append(f.receivers, f.text(a.Lhs[i]))
	}
}

// check leaves out a statement that checks or complains.
func (f *finder) check(s *ast.ExprStmt) {
	call, ok := s.X.(*ast.CallExpr)
	if !ok {
		return
	}
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains(f.receivers, f.text(fun.X)) {
		return
	}
	f.mutant(s, "left out: "+f.text(s))
	f.around(s, fmt.Sprintf("if !mutantIs(%d) { ", f.last()), " }")
}

// answer changes what a method of a check answers by itself: a reason becomes none, and true false.
func (f *finder) answer(r *ast.ReturnStmt) {
	if len(f.receivers) == 0 || len(r.Results) != 1 {
		return
	}
	e := r.Results[0]
	switch text := f.text(e); {
	case text == "true" || text == "false":
		f.mutant(e, "returns not "+text)
		f.around(e, fmt.Sprintf("mutantNegates(%d, ", f.last()), ")")
	case strings.HasPrefix(text, `"`) && text != `""`:
		f.mutant(e, "returns not "+text)
		f.around(e, fmt.Sprintf("mutantSays(%d, ", f.last()), `, "")`)
	}
}

func (f *finder) mutant(at ast.Node, what string) {
	what = strings.Join(strings.Fields(what), " ")
	m := mutant{n: f.first + len(f.found), file: f.file, function: f.function, line: f.fset.Position(at.Pos()).Line,
		what: what}
	for i := 2; slices.ContainsFunc(f.found, func(o mutant) bool { return o.name() == m.name() }); i++ {
		m.what = fmt.Sprintf("%s #%d", what, i)
	}
	f.found = append(f.found, m)
}

// last is the number of the mutant that was found last.
func (f *finder) last() int { return f.first + len(f.found) - 1 }

func (f *finder) offset(p token.Pos) int { return f.fset.Position(p).Offset }

func (f *finder) text(n ast.Node) string { return f.src[f.offset(n.Pos()):f.offset(n.End())] }

func (f *finder) around(n ast.Node, open, end string) {
	f.opens = append(f.opens, edit{f.offset(n.Pos()), open})
	f.closes = append(f.closes, edit{f.offset(n.End()), end})
}

// rewritten is the file with all edits. At one place what encloses opens first and closes last, as it was found first.
func (f *finder) rewritten() string {
	slices.Reverse(f.closes)
	edits := slices.Concat(f.closes, f.opens)
	slices.SortStableFunc(edits, func(a, b edit) int { return a.at - b.at })
	var out strings.Builder
	at := 0
	for _, e := range edits {
		out.WriteString(f.src[at:e.at])
		out.WriteString(e.text)
		at = e.at
	}
	out.WriteString(f.src[at:])
	return out.String()
}
