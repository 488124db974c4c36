package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/rampart-gitops/rampart/policy/parse"
)

// documents are data that never change. They are a query's cache of data, filled from the start and shared by all
// queries, so that no query reads the store.
type documents struct {
	root  ast.Value
	store storage.Store
	txn   storage.Transaction
}

var _ topdown.BaseCache = (*documents)(nil)

func newDocuments(data map[string]any) (*documents, error) {
	root, err := ast.InterfaceToValue(data)
	if err != nil {
		return nil, fmt.Errorf("read data: %w", err)
	}
	// What the cache lacks is looked for in the store, which has nothing either.
	d := &documents{root: root, store: inmem.New()}
	d.txn, err = d.store.NewTransaction(context.Background())
	return d, err
}

// Get gives what is at a path of data, nil for nothing.
func (d *documents) Get(ref ast.Ref) ast.Value {
	v, err := d.root.Find(ref[1:])
	if err != nil {
		return nil
	}
	return v
}

// Put has nothing to add.
func (d *documents) Put(ast.Ref, ast.Value) {}

// policies are prepared queries.
type policies struct {
	compiler *ast.Compiler
	data     *documents
	packages map[string]*prepared
}

// prepared are the queries of one package.
type prepared struct {
	// whole asks for all rule sets at once that are sets, as most are; the others may be undefined.
	whole query
	// sets ask for one each, where the whole fails.
	sets map[string]query
	// apart are the names of the rule sets that whole does not ask for.
	apart []string
	// places of each rule set's rules, for messages; foreign are those of all untrusted rules.
	places  map[string]string
	foreign string
}

// query gives the findings of rule sets, which it binds to variables.
type query struct {
	pkg      string
	body     ast.Body
	compiler ast.QueryCompiler
	sets     []parse.RuleSet
	vars     []ast.Var
	// places are those of the package.
	places map[string]string
}

// maxPlaces is how many lines a message names.
const maxPlaces = 3

func (b *rulebook) prepare(c *ast.Compiler, data *documents) *policies {
	out := &policies{compiler: c, data: data, packages: map[string]*prepared{}}
	if c == nil || c.Failed() || data == nil {
		return out
	}
	for name, sets := range parse.Contract() {
		p := &prepared{sets: map[string]query{}, places: map[string]string{}}
		var together []parse.RuleSet
		var all []*ast.Rule
		for _, set := range sets {
			rules := c.GetRulesWithPrefix(ast.MustParseRef("data." + name + "." + set.Name))
			p.places[set.Name] = b.places(rules)
			all = append(all, rules...)
			switch {
			case len(rules) == 0:
				continue
			case slices.ContainsFunc(rules, func(r *ast.Rule) bool {
				return r.Head.RuleKind() != ast.MultiValue || len(r.Ref()) != 4
			}):
				p.apart = append(p.apart, set.Name)
			default:
				together = append(together, set)
			}
			q, err := prepareQuery(c, name, []parse.RuleSet{set})
			b.addErrors(name, err)
			q.places = p.places
			p.sets[set.Name] = q
		}
		q, err := prepareQuery(c, name, together)
		b.addErrors(name, err)
		q.places = p.places
		p.whole, p.foreign = q, b.places(slices.DeleteFunc(all, func(r *ast.Rule) bool {
			return b.ours[r.Location.File]
		}))
		out.packages[name] = p
	}
	return out
}

func prepareQuery(c *ast.Compiler, pkg string, sets []parse.RuleSet) (q query, err error) {
	defer parse.Recovered(&err)
	if len(sets) == 0 {
		return query{}, nil
	}
	q.pkg, q.sets = pkg, sets
	var text []string
	for i, set := range sets {
		q.vars = append(q.vars, ast.Var(fmt.Sprintf("answer%d", i)))
		text = append(text, fmt.Sprintf("answer%d = data.%s.%s", i, pkg, set.Name))
	}
	body, err := ast.ParseBodyWithOpts(strings.Join(text, "; "), ast.ParserOptions{RegoVersion: ast.RegoV1})
	if err != nil {
		return query{}, err
	}
	q.compiler = c.QueryCompiler()
	q.body, err = q.compiler.Compile(body)
	return q, err
}

// places says where rules are: the repository's, or else the library's.
func (b *rulebook) places(rules []*ast.Rule) string {
	var theirs, ours []string
	for _, r := range rules {
		at := fmt.Sprintf("%s:%d", r.Location.File, r.Location.Row)
		if b.ours[r.Location.File] {
			ours = append(ours, at)
		} else {
			theirs = append(theirs, at)
		}
	}
	if len(theirs) == 0 {
		theirs = ours
	}
	slices.Sort(theirs)
	theirs = slices.Compact(theirs)
	if n := len(theirs); n > maxPlaces {
		return fmt.Sprintf("%s and %d more", strings.Join(theirs[:maxPlaces], ", "), n-maxPlaces)
	}
	return strings.Join(theirs, ", ")
}

// errUndefined says that a query has no answer.
var errUndefined = errors.New("undefined")

// exhausted says how a query went beyond its bounds.
type exhausted string

func (e exhausted) Error() string { return string(e) }

// question is one evaluation of a query.
type question struct {
	input ast.Value
	// now is the time of time.now_ns.
	now    time.Time
	budget *budget
	// tracer is told of each step; nil: there is no tracer.
	tracer topdown.QueryTracer
}

// run evaluates a query: what its rule sets say, in their order. It ends with errUndefined where one of them is not
// defined.
func (p *policies) run(q query, ask question) (out []reading, err error) {
	defer parse.Recovered(&err)
	values, err := p.evaluate(q, ask)
	if err != nil {
		return nil, err
	}
	for i, set := range q.sets {
		r, err := readSet(q, set, values[i])
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// query is a question to OPA's evaluator.
func (p *policies) query(q query, ask question) *topdown.Query {
	t := topdown.NewQuery(q.body).WithQueryCompiler(q.compiler).WithCompiler(p.compiler).WithStore(p.data.store).
		WithTransaction(p.data.txn).
		WithBaseCache(p.data).WithInput(ast.NewTerm(ask.input)).WithTime(ask.now).WithCancel(ask.budget).
		WithMetrics(metrics.NoOp())
	if ask.tracer != nil {
		t = t.WithQueryTracer(ask.tracer)
	}
	return t
}

func (p *policies) evaluate(q query, ask question) (values []*ast.Term, err error) {
	if err := ask.budget.ctx.Err(); err != nil {
		return nil, err
	}
	t := p.query(q, ask).WithStrictBuiltinErrors(true).WithStackTraces(true)
	answers := 0
	err = t.Iter(ask.budget.ctx, func(r topdown.QueryResult) error {
		answers++
		values = make([]*ast.Term, len(q.vars))
		for i, v := range q.vars {
			values[i] = r[v]
		}
		return nil
	})
	switch {
	case ask.budget.spent != "":
		return nil, exhausted(ask.budget.spent)
	case err != nil:
		return nil, err
	case answers == 0:
		return nil, errUndefined
	case answers > 1:
		return nil, fmt.Errorf("%d answers where one is expected", answers)
	}
	return values, nil
}
