package v1alpha1

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"
)

// Tree gives the worker deployment without its status as DecodeJSON reads its JSON. Errors: raw parts that are not
// JSON, and numbers that JSON does not have.
func (w *WorkerDeployment) Tree() (map[string]any, error) {
	return shapes().workerDeployment.treeOf(reflect.ValueOf(w).Elem())
}

// Tree gives the spec as DecodeJSON reads its JSON. Errors: raw parts that are not JSON, and numbers that JSON does not
// have.
func (s *WorkerDeploymentSpec) Tree() (map[string]any, error) {
	return shapes().spec.treeOf(reflect.ValueOf(s).Elem())
}

// Tree gives the record as DecodeJSON reads its JSON, with the fields that this release does not know. Errors: numbers
// that JSON does not have, and unknown fields that are not JSON.
func (r *Routing) Tree() (map[string]any, error) {
	object, err := shapes().routing.treeOf(reflect.ValueOf(r).Elem())
	if err != nil || r.Whole == nil {
		return object, err
	}
	was, err := DecodeJSON(r.Whole)
	if err != nil {
		return nil, err
	}
	keepUnknown(shapes().routing, object, was)
	return object, nil
}

// treeOf gives what json.Marshal and DecodeJSON give for an object together, in less time.
func (s *shape) treeOf(v reflect.Value) (map[string]any, error) {
	object := make(map[string]any, len(s.fields))
	for i := range s.fields {
		f := &s.fields[i]
		field := v.FieldByIndex(f.index)
		if omitted(s, f, field) {
			continue
		}
		value, err := f.shape.valueOf(field)
		if err != nil {
			return nil, err
		}
		object[f.name] = value
	}
	return object, nil
}

// valueOf gives a field's value as DecodeJSON reads its JSON.
func (s *shape) valueOf(v reflect.Value) (any, error) {
	switch s.form {
	case formString:
		return validText(v.String()), nil
	case formBool:
		return v.Bool(), nil
	case formInt:
		return json.Number(strconv.FormatInt(v.Int(), 10)), nil
	case formFloat:
		if f := v.Float(); (f < 0 || f > 0) && !math.IsInf(f, 0) { // of the others JSON has a negative zero, or nothing
			return json.Number(formatFloat(f)), nil
		}
	case formObject:
		return s.treeOf(v)
	case formPointer:
		if v.IsNil() {
			return nil, nil
		}
		return s.elem.valueOf(v.Elem())
	case formList:
		return s.listOf(v)
	case formMap:
		return s.mapOf(v)
	}
	switch x := v.Interface().(type) {
	case Time:
		if !x.IsZero() {
			return x.UTC().Format(time.RFC3339Nano), nil
		}
	case Duration:
		return x.String(), nil
	case PodTemplate:
		if len(x.Raw) > 0 {
			return DecodeJSON(x.Raw)
		}
	}
	raw, err := json.Marshal(v.Interface())
	if err != nil {
		return nil, err
	}
	return DecodeJSON(raw)
}

func (s *shape) listOf(v reflect.Value) (any, error) {
	if v.IsNil() {
		return nil, nil
	}
	list := make([]any, v.Len())
	for i := range list {
		item, err := s.elem.valueOf(v.Index(i))
		if err != nil {
			return nil, err
		}
		list[i] = item
	}
	return list, nil
}

func (s *shape) mapOf(v reflect.Value) (any, error) {
	if v.IsNil() {
		return nil, nil
	}
	object := make(map[string]any, v.Len())
	for each := v.MapRange(); each.Next(); {
		value, err := s.elem.valueOf(each.Value())
		if err != nil {
			return nil, err
		}
		object[validText(each.Key().String())] = value
	}
	return object, nil
}

// validText is a text as JSON holds it: with U+FFFD for each byte that is not UTF-8.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}
