package v1alpha1

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// assigner fills Go values from nodes, strictly: what has no place or the wrong type is reported.
type assigner struct {
	report *report
	// lenient leaves out unknown fields without a word.
	lenient bool
	// keeps says that unknown fields are kept, with a warning, and kept whether there were any.
	keeps, kept bool
}

// object fills the struct that out points to.
func (a *assigner) object(n *node, s *shape, out any) {
	a.assign(n, s, reflect.ValueOf(out).Elem())
}

// assign gives out the value of n. An invalid out means that n is only checked. Null is the same as not being there.
func (a *assigner) assign(n *node, s *shape, out reflect.Value) {
	if n.bad || a.report.full() {
		return
	}
	if n.kind == nullNode && s.form != formRaw {
		return
	}
	switch s.form {
	case formPointer:
		if !out.IsValid() {
			a.assign(n, s.elem, out)
			return
		}
		p := reflect.New(s.elem.typ)
		a.assign(n, s.elem, p.Elem())
		out.Set(p)
	case formObject:
		a.fields(n, s, out)
	case formMap:
		a.entries(n, s, out)
	case formList:
		a.items(n, s, out)
	case formRaw, formTemplate:
		a.raw(n, s, out)
	default:
		a.scalar(n, s, out)
	}
}

// wants reports a wrong type. Values are not repeated: they may be secret.
func (a *assigner) wants(n *node, what string) {
	n.bad = true
	hint := ""
	_, err := strconv.ParseFloat(n.text, 64)
	switch {
	case n.kind == stringNode && err == nil && strings.HasSuffix(what, "number"),
		n.kind == stringNode && (n.text == "true" || n.text == "false") && what == boolNode.String():
		hint = " (take the quotes away)"
	case what == stringNode.String() && (n.kind == numberNode || n.kind == boolNode):
		hint = " (put it in quotes)"
	}
	a.report.errorf(n, "expected %s, got %s%s", what, n.kind, hint)
}

// fields goes through an object's fields and the shape's, both sorted by name.
func (a *assigner) fields(n *node, s *shape, out reflect.Value) {
	if n.kind != objectNode {
		a.wants(n, objectNode.String())
		return
	}
	if out.IsValid() && s.preset != nil {
		s.preset(out)
	}
	known := s.fields
	for _, k := range n.kids {
		if a.report.full() {
			return
		}
		for len(known) > 0 && known[0].name < k.key {
			known = known[1:]
		}
		if len(known) > 0 && known[0].name == k.key {
			var field reflect.Value
			if out.IsValid() {
				field = out.FieldByIndex(known[0].index)
			}
			a.assign(k, known[0].shape, field)
			continue
		}
		a.unknown(k, s)
	}
}

func (a *assigner) unknown(k *node, s *shape) {
	if a.lenient || k.bad && k.meant != "" { // the second was reported before
		return
	}
	for _, name := range s.dropped {
		if name == k.key {
			return
		}
	}
	// by people, who misspell
	edited := s.typ == reflect.TypeFor[DesiredRouting]() || s.typ == reflect.TypeFor[DesiredRamp]()
	if a.keeps && !(edited && Closest(k.key, s.names()) != "") {
		a.kept = true
		a.report.warnf(k, "unknown field: it is kept as it is, since a newer release may have written it")
		return
	}
	k.bad, k.meant = true, Closest(k.key, s.names())
	a.report.suggest(k, k.meant, "unknown field")
}

func (a *assigner) entries(n *node, s *shape, out reflect.Value) {
	if n.kind != objectNode {
		a.wants(n, objectNode.String())
		return
	}
	if !out.IsValid() {
		for _, k := range n.kids {
			a.assign(k, s.elem, out)
		}
		return
	}
	// An empty map is written as none, so it is read as none.
	if len(n.kids) == 0 {
		return
	}
	m := reflect.MakeMapWithSize(s.typ, len(n.kids))
	for _, k := range n.kids {
		v := reflect.New(s.elem.typ).Elem()
		a.assign(k, s.elem, v)
		m.SetMapIndex(reflect.ValueOf(strings.Clone(k.key)), v)
	}
	out.Set(m)
}

func (a *assigner) items(n *node, s *shape, out reflect.Value) {
	if n.kind != listNode {
		a.wants(n, listNode.String())
		return
	}
	if len(n.kids) == 0 {
		return
	}
	var list, item reflect.Value
	if out.IsValid() {
		list = reflect.MakeSlice(s.typ, len(n.kids), len(n.kids))
	}
	for i, k := range n.kids {
		if k.kind == nullNode {
			k.bad = true
			a.report.errorf(k, "an item of the list is empty")
			continue
		}
		if out.IsValid() {
			item = list.Index(i)
		}
		a.assign(k, s.elem, item)
	}
	if out.IsValid() {
		out.Set(list)
	}
}

// raw keeps a value as canonical JSON, after it was checked against its type if it has one.
func (a *assigner) raw(n *node, s *shape, out reflect.Value) {
	if s.inside != nil {
		a.assign(n, s.inside, reflect.Value{})
	} else {
		a.words(n)
	}
	if !out.IsValid() || n.kind == nullNode {
		return
	}
	if s.form == formTemplate {
		out.Addr().Interface().(*PodTemplate).set(n)
		return
	}
	out.SetBytes(n.json())
}

// words warns of plain words in JSON of any type, which other readers of YAML take for true or false.
func (a *assigner) words(n *node) {
	if n.word {
		a.report.warnf(n,
			"a plain %s is the string %q here, and %s to older readers of YAML: put it in quotes, or write %s",
			n.text, n.text, wordValue(n.text), wordValue(n.text))
	}
	for _, k := range n.kids {
		a.words(k)
	}
}

func (a *assigner) scalar(n *node, s *shape, out reflect.Value) {
	switch s.form {
	case formString:
		a.text(n, s, out)
	case formBool:
		if n.word {
			n.kind, n.text, n.word = boolNode, wordValue(n.text), false
		}
		if n.kind != boolNode {
			a.wants(n, boolNode.String())
		} else if out.IsValid() {
			out.SetBool(n.text == "true")
		}
	case formInt:
		a.integer(n, s, out)
	case formFloat:
		f, err := strconv.ParseFloat(n.text, 64)
		if n.kind != numberNode || err != nil {
			a.wants(n, numberNode.String())
		} else if out.IsValid() {
			out.SetFloat(f)
		}
	case formDuration:
		a.duration(n, out)
	case formTime:
		a.time(n, out)
	case formQuantity:
		if n.kind != stringNode && n.kind != numberNode {
			a.wants(n, "a quantity such as 500m or 1Gi")
		} else if _, err := resource.ParseQuantity(n.text); err != nil {
			n.bad = true
			a.report.errorf(n, "%s is not a quantity such as 500m or 1Gi", quote(n.text))
		}
	case formIntOrString:
		if n.kind != stringNode && n.kind != numberNode {
			a.wants(n, "a number or a string")
		} else if _, err := strconv.ParseInt(n.text, 10, 32); n.kind == numberNode && err != nil {
			a.wants(n, "a whole number or a string")
		}
	}
}

func (a *assigner) text(n *node, s *shape, out reflect.Value) {
	if n.kind != stringNode {
		a.wants(n, stringNode.String())
		return
	}
	if s.enum != nil {
		for _, v := range s.enum {
			if n.text == v {
				out.SetString(v)
				return
			}
		}
		n.bad = true
		a.report.suggest(n, Closest(n.text, s.enum), "%s: want one of %s", quote(n.text), strings.Join(s.enum, ", "))
		return
	}
	if out.IsValid() {
		out.SetString(strings.Clone(n.text))
	}
}

func (a *assigner) integer(n *node, s *shape, out reflect.Value) {
	i, err := strconv.ParseInt(n.text, 10, s.typ.Bits())
	switch {
	case n.kind != numberNode:
		a.wants(n, "a whole number")
	case err != nil:
		n.bad = true
		a.report.errorf(n, "%s is not a whole number of %d bits", quote(n.text), s.typ.Bits())
	case out.IsValid():
		out.SetInt(i)
	}
}

// maxDuration keeps sums of durations and dates in range.
const maxDuration = 10 * 365 * 24 * time.Hour

func (a *assigner) duration(n *node, out reflect.Value) {
	if n.kind == numberNode {
		n.bad = true
		a.report.suggest(n, n.text+"s", "a duration needs a unit, such as 30s, 10m or 1h30m")
		return
	}
	if n.kind != stringNode {
		a.wants(n, "a duration such as 30s, 10m or 1h30m")
		return
	}
	d, err := time.ParseDuration(n.text)
	switch {
	case err != nil:
		n.bad = true
		a.report.suggest(n, inHours(n.text), "duration %s is not of the form 30s, 10m or 1h30m", quote(n.text))
	case d > maxDuration:
		n.bad = true
		a.report.errorf(n, "duration %s is longer than ten years", quote(n.text))
	default:
		out.Addr().Interface().(*Duration).Duration = d
	}
}

// inHours rewrites days and weeks, which Go's durations do not have.
func inHours(s string) string {
	for unit, hours := range map[string]int{"d": 24, "w": 7 * 24} {
		if number, ok := strings.CutSuffix(s, unit); ok {
			if n, err := strconv.ParseUint(number, 10, 16); err == nil {
				return strconv.Itoa(int(n)*hours) + "h"
			}
		}
	}
	return ""
}

func (a *assigner) time(n *node, out reflect.Value) {
	if n.kind != stringNode {
		a.wants(n, "a time such as 2026-01-31T12:00:00Z")
		return
	}
	t, err := time.Parse(time.RFC3339Nano, n.text)
	if err != nil {
		n.bad = true
		a.report.errorf(n, "time %s is not of the form 2026-01-31T12:00:00Z", quote(n.text))
		return
	}
	if year := t.UTC().Year(); year < 1970 || year > 9999 {
		n.bad = true
		a.report.errorf(n, "time %s is not between the years 1970 and 9999", quote(n.text))
		return
	}
	if out.IsValid() {
		if p, ok := out.Addr().Interface().(*Time); ok {
			*p = NewTime(t)
		}
	}
}
