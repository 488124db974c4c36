package input

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// object collects the pairs of an OPA object, whose keys differ. Its methods leave out what says nothing, but for flags
// and numbers.
type object struct{ pairs [][2]*ast.Term }

func newObject() *object { return &object{} }

func (o *object) value() ast.Value { return ast.NewObject(o.pairs...) }

func (o *object) term() *ast.Term { return ast.NewTerm(o.value()) }

func (o *object) put(key string, v ast.Value) { o.add(key, ast.NewTerm(v)) }

func (o *object) add(key string, t *ast.Term) {
	o.pairs = append(o.pairs, [2]*ast.Term{ast.InternedTerm(key), t})
}

func (o *object) text(key, s string) {
	if s != "" {
		o.put(key, ast.String(s))
	}
}

func (o *object) flag(key string, b bool) { o.add(key, ast.InternedTerm(b)) }

func (o *object) integer(key string, n int64) { o.add(key, ast.InternedTerm(n)) }

// count leaves out 0.
func (o *object) count(key string, n int) {
	if n != 0 {
		o.integer(key, int64(n))
	}
}

func (o *object) number(key string, f float64) {
	if n := int64(f); float64(n) == f {
		o.integer(key, n)
		return
	}
	o.put(key, ast.Number(json.Number(strconv.FormatFloat(f, 'f', -1, 64))))
}

// rounded is a measured number, with so many significant digits as say something: what policies see is recorded.
func (o *object) rounded(key string, f float64, digits int) { o.number(key, significant(f, digits)) }

// significant is the number nearest to f that has so many significant digits.
func significant(f float64, digits int) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(f, 'e', digits-1, 64), 64)
	if err != nil {
		return f
	}
	return r
}

func (o *object) time(key string, t time.Time) {
	if !t.IsZero() {
		o.put(key, ast.String(Instant(t)))
	}
}

func (o *object) duration(key string, d time.Duration) {
	if d != 0 {
		o.put(key, ast.String(v1alpha1.Duration{Duration: d}.String()))
	}
}

// answer adds an answer; it leaves out an unknown one.
func (o *object) answer(key string, a rollout.Answer) {
	if a != "" {
		o.flag(key, a == rollout.Yes)
	}
}

func (o *object) texts(key string, s []string) {
	if len(s) == 0 {
		return
	}
	o.put(key, texts(s))
}

func texts(s []string) ast.Value {
	terms := make([]*ast.Term, 0, len(s))
	for _, x := range s {
		terms = append(terms, ast.StringTerm(x))
	}
	return ast.NewArray(terms...)
}

func dictionary(m map[string]string) ast.Value {
	o := newObject()
	for k, v := range m {
		o.put(k, ast.String(v))
	}
	return o.value()
}

// list is an array of objects.
func list[T any](items []T, fill func(*object, T)) ast.Value {
	terms := make([]*ast.Term, 0, len(items))
	for _, item := range items {
		o := newObject()
		fill(o, item)
		terms = append(terms, o.term())
	}
	return ast.NewArray(terms...)
}

// Instant is in whole seconds: what differs by less makes no decision, and would fill the log of decisions.
func Instant(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }
