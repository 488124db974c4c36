package policy

import (
	"slices"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/policy/parse"
	library "github.com/rampart-gitops/rampart/rego"
)

// rulebook is a library with other modules and data on top, compiled once.
type rulebook struct {
	digest   string
	problems []parse.Problem
	// all policies that compile.
	all *policies
	// library is the library alone, which is asked where the others fail, and is compiled then. It is all where there
	// are no others.
	library func() *policies
	// ours are the paths of the library's modules; factsPath is the one of package rampart.facts.
	ours      map[string]bool
	factsPath string
	// total says that a package without any defined rule is a hold.
	total bool
	// only are the rules that have a say; nil: all.
	only map[string]bool
	// foreign says that there are modules beside the library's; they are untrusted.
	foreign    bool
	quarantine quarantine
	// looks are the parts of the input that modules refer to; all says that a module refers to it as a whole.
	looks    map[string]bool
	looksAll bool
	// statuses are the contexts of commit statuses that policies may ask about.
	statuses map[string]bool
	kept     keptSpecs
}

type bookConfig struct {
	library, modules []parse.Module
	data             []parse.DataFile
	total            bool
	only             map[string]bool
}

func newRulebook(cfg bookConfig) *rulebook {
	b := &rulebook{ours: map[string]bool{}, total: cfg.total, only: cfg.only, foreign: len(cfg.modules) > 0,
		quarantine: quarantine{out: map[string]sentence{}}, kept: newKeptSpecs()}
	s := &source{book: b}
	for _, m := range cfg.library {
		b.ours[m.Path] = true
		s.parse(m)
	}
	own := s.parsed
	s.parsed = nil
	modules, problems := parse.WithinBounds(cfg.modules)
	b.add(problems...)
	for _, m := range modules {
		s.parseOwn(m)
	}
	for _, m := range own {
		if m.Package.Path.String() == "data."+parse.PackageFacts {
			b.factsPath = m.Package.Location.File
		}
	}
	b.look(slices.Concat(own, s.parsed))
	data, problems := parse.LoadData(cfg.data)
	b.add(problems...)
	b.statuses = statusesIn(s.parsed)
	addConfigured(b.statuses, data)
	var err error
	if b.digest, err = digest(slices.Concat(own, s.parsed), s.broken, data); err != nil {
		b.add(parse.Problem{Path: "policies", Message: err.Error()})
	}
	documents, err := newDocuments(data)
	b.addErrors("data", err)
	b.all = b.prepare(s.compile(own, data), documents)
	b.library = func() *policies { return b.all }
	b.lookBehind(parse.ConfiguredRules(cfg.data), data)
	b.kept.timeless = b.all.compiler != nil && !b.all.compiler.Failed() && timeless(b.all.compiler, parse.PackageSpec)
	if len(s.parsed) > 0 {
		alone := &rulebook{ours: b.ours}
		b.library = sync.OnceValue(func() *policies {
			c := parse.NewCompiler(nil)
			_ = parse.Compile(c, own) // its errors are among those of all
			return alone.prepare(c, documents)
		})
	}
	return b
}

// look notes what of the input modules refer to.
func (b *rulebook) look(modules []*ast.Module) {
	b.looks = map[string]bool{}
	for _, m := range modules {
		visitRefs(m, func() { b.looksAll = true }, func(_ ast.Ref, part string, ofInput bool) {
			if ofInput {
				b.looks[part] = true
			}
		})
	}
}

// partOfInput gives the part that a reference names, which a variable does not.
func partOfInput(r ast.Ref) (string, bool) {
	if len(r) < 2 || !r[0].Equal(ast.InputRootDocument) {
		return "", false
	}
	part, ok := r[1].Value.(ast.String)
	return string(part), ok
}

func (b *rulebook) add(problems ...parse.Problem) { b.problems = append(b.problems, problems...) }

// addErrors reports the errors of OPA; those without a place belong to path.
func (b *rulebook) addErrors(path string, err error) { b.add(parse.ProblemsOf(path, err)...) }

// source collects modules.
type source struct {
	book   *rulebook
	parsed []*ast.Module
	// broken are those that do not parse.
	broken []parse.Module
}

// parse reads one module; nil if it cannot be used, which is reported.
func (s *source) parse(m parse.Module) *ast.Module {
	parsed, err := parse.Rego(m)
	if err != nil {
		s.book.add(parse.Unparsed(m, err)...)
		s.broken = append(s.broken, m)
		return nil
	}
	s.parsed = append(s.parsed, parsed)
	return parsed
}

// parseOwn reads a module of the repository. Files of tests are not policies: they are left out, and may hold no rule
// that would be read.
func (s *source) parseOwn(m parse.Module) {
	p := s.parse(m)
	if p == nil {
		return
	}
	var err error
	switch name := parse.PackageName(p); {
	case library.IsTest(m.Path):
		s.parsed = s.parsed[:len(s.parsed)-1]
		err = parse.OnlyTests(p, name)
	case s.book.ours[m.Path]:
		err = parse.ErrorAt(p, "the path is that of a module of the library")
	default:
		err = parse.AllowedPackage(p, name)
	}
	s.book.addErrors(m.Path, err)
	if err != nil && !library.IsTest(m.Path) {
		s.parsed = s.parsed[:len(s.parsed)-1]
		s.broken = append(s.broken, m)
	}
}

// compile compiles the library and as many of the other modules as go with it. Those that do not are reported and left
// out, so that the rest still has its say.
func (s *source) compile(own []*ast.Module, data map[string]any) *ast.Compiler {
	rest := slices.Clone(s.parsed)
	for {
		c := parse.NewCompiler(data)
		err := parse.Compile(c, slices.Concat(own, rest))
		if err == nil || len(rest) == 0 {
			s.book.addErrors("library", err)
			return c
		}
		kept := slices.DeleteFunc(slices.Clone(rest), func(m *ast.Module) bool { return names(err, m) })
		if len(kept) < len(rest) {
			s.book.addErrors("policies", err)
			rest = kept
			continue
		}
		// The errors name the library only: one of the modules is at odds with it.
		rest = slices.DeleteFunc(kept, func(m *ast.Module) bool {
			err := parse.Compile(parse.NewCompiler(data), append(slices.Clone(own), m))
			for _, p := range parse.ProblemsOf(m.Package.Location.File, err) {
				s.book.add(parse.Problem{Path: m.Package.Location.File, Line: m.Package.Location.Row,
					Message: p.Error()})
			}
			return err != nil
		})
		if len(rest) == len(kept) {
			s.book.addErrors("policies", err)
			rest = nil
		}
	}
}

// names reports whether an error is placed in a module.
func names(err error, m *ast.Module) bool {
	return slices.ContainsFunc(parse.ProblemsOf("", err), func(p parse.Problem) bool {
		return p.Path == m.Package.Location.File
	})
}
