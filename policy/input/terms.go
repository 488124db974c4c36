package input

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// Encoder turns Go values of the types that it was made for into terms, such as reading their JSON would give, without
// going through text. It does not change once made and is safe for concurrent use.
type Encoder map[reflect.Type]*structPlan

// structPlan is how a struct becomes an object.
type structPlan struct{ fields []fieldPlan }

type fieldPlan struct {
	index []int
	key   *ast.Term
	// empty reports whether the field is left out; nil: never.
	empty func(reflect.Value) bool
	// through says that the value has a JSON of its own.
	through bool
}

// NewEncoder makes an encoder that knows the structs below types; values of others go through their JSON.
func NewEncoder(types ...reflect.Type) Encoder {
	m := Encoder{}
	for _, t := range types {
		m.learn(t)
	}
	return m
}

// learn prepares for a type and all that it is made of.
func (m Encoder) learn(t reflect.Type) {
	if encodesItself(t) {
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		m.learn(t.Elem())
	case reflect.Struct:
		if m[t] != nil {
			return
		}
		plan := &structPlan{}
		m[t] = plan
		for _, f := range reflect.VisibleFields(t) {
			m.learnField(plan, f)
		}
	}
}

func (m Encoder) learnField(plan *structPlan, f reflect.StructField) {
	tag, named := f.Tag.Lookup("json")
	name, options, _ := strings.Cut(tag, ",")
	inline := f.Anonymous && name == ""
	if !f.IsExported() || tag == "-" || inline && f.Type.Kind() == reflect.Struct {
		return // the fields of an embedded struct are visible by themselves
	}
	if !named || name == "" {
		name = f.Name
	}
	p := fieldPlan{index: f.Index, key: ast.StringTerm(name), through: encodesItself(f.Type)}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			p.empty = isEmpty
		case "omitzero":
			p.empty = zeroOf(f.Type)
		}
	}
	plan.fields = append(plan.fields, p)
	m.learn(f.Type)
}

func encodesItself(t reflect.Type) bool {
	marshaler, text := reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()
	return t.Implements(marshaler) || t.Implements(text) || t.Kind() == reflect.Interface ||
		t.Kind() != reflect.Pointer && (reflect.PointerTo(t).Implements(marshaler) || reflect.PointerTo(t).Implements(text))
}

// isEmpty is omitempty of encoding/json.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// zeroOf is omitzero of encoding/json: a type's own IsZero has the say.
func zeroOf(t reflect.Type) func(reflect.Value) bool {
	type zeroer interface{ IsZero() bool }
	if t.Kind() != reflect.Pointer && t.Implements(reflect.TypeFor[zeroer]()) {
		return func(v reflect.Value) bool { return v.Interface().(zeroer).IsZero() }
	}
	return reflect.Value.IsZero
}

// Encode gives the term's value of a Go value.
func (m Encoder) Encode(v reflect.Value) (ast.Value, error) {
	if encodesItself(v.Type()) {
		return through(v)
	}
	return m.known(v)
}

// through goes through the value's own JSON, which mostly is one scalar.
func through(v reflect.Value) (ast.Value, error) {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return ast.NullValue, nil
	}
	own, ok := v.Interface().(json.Marshaler)
	if !ok && v.CanAddr() {
		own, ok = v.Addr().Interface().(json.Marshaler)
	}
	if !ok {
		return plain(v.Interface())
	}
	text, err := own.MarshalJSON()
	if err != nil {
		return nil, err
	}
	switch n := len(text); {
	case n >= 2 && text[0] == '"' && bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text):
		return ast.InternedTerm(string(text[1 : n-1])).Value, nil
	case n > 0 && (text[0] == '-' || text[0] >= '0' && text[0] <= '9'):
		if !small(string(text)) {
			return nil, fmt.Errorf("a number with more than %d digits: %s", maxDigits, parse.Cut(string(text), parse.MaxRule))
		}
		return ast.Number(text), nil
	}
	return valueOfJSON(text)
}

// valueOfJSON reads a value's JSON.
func valueOfJSON(text []byte) (ast.Value, error) {
	v, err := v1alpha1.DecodeJSON(text)
	if err != nil {
		return nil, err
	}
	return ast.InterfaceToValue(v)
}

func (m Encoder) known(v reflect.Value) (ast.Value, error) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return ast.NullValue, nil
		}
		return m.Encode(v.Elem())
	case reflect.String:
		return ast.InternedTerm(v.String()).Value, nil
	case reflect.Bool:
		return ast.InternedTerm(v.Bool()).Value, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return ast.InternedTerm(v.Int()).Value, nil
	case reflect.Struct:
		return m.object(v)
	case reflect.Slice:
		return m.list(v)
	case reflect.Map:
		return m.dictionary(v)
	}
	return plain(v.Interface())
}

func (m Encoder) object(v reflect.Value) (ast.Value, error) {
	plan := m[v.Type()]
	if plan == nil {
		return plain(v.Interface())
	}
	o := newObject()
	for i := range plan.fields {
		p := &plan.fields[i]
		f := v
		for _, at := range p.index {
			f = f.Field(at)
		}
		if p.empty != nil && p.empty(f) {
			continue
		}
		value := m.known
		if p.through {
			value = through
		}
		got, err := value(f)
		if err != nil {
			return nil, err
		}
		o.pairs, o.values = append(o.pairs, [2]*ast.Term{p.key, nil}), append(o.values, got)
	}
	return o.value(), nil
}

func (m Encoder) list(v reflect.Value) (ast.Value, error) {
	if v.IsNil() {
		return ast.NullValue, nil
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return plain(v.Interface())
	}
	terms := make([]*ast.Term, v.Len())
	for i := range terms {
		value, err := m.Encode(v.Index(i))
		if err != nil {
			return nil, err
		}
		terms[i] = ast.NewTerm(value)
	}
	return ast.NewArray(terms...), nil
}

func (m Encoder) dictionary(v reflect.Value) (ast.Value, error) {
	if v.IsNil() {
		return ast.NullValue, nil
	}
	if v.Type().Key().Kind() != reflect.String {
		return plain(v.Interface())
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	pairs := make([][2]*ast.Term, len(keys))
	for i, k := range keys {
		value, err := m.Encode(v.MapIndex(k))
		if err != nil {
			return nil, err
		}
		pairs[i] = [2]*ast.Term{ast.InternedTerm(k.String()), ast.NewTerm(value)}
	}
	return ast.NewObject(pairs...), nil
}

// maxDigits of a number. OPA keeps a number as the text that it was written as, and calculates with all its digits.
const maxDigits = 1000

// small reports whether a number has few digits, also when it is written without an exponent.
func small(text string) bool {
	value, err := strconv.ParseFloat(text, 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	return err == nil && len(text) <= maxDigits && (value != 0 || strings.Trim(mantissa, "-0.") == "")
}
