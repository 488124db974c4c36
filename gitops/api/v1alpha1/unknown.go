package v1alpha1

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// RecordFormat is the format of records that this release reads: what it neglects of a record that wants a higher one
// could raise traffic.
const RecordFormat = 1

// A record may have fields of a newer release. They are kept as they are: with the object that has them, which in a
// list is found again by what identifies it. An object that is another one than before (another target, another hold)
// has none of them: they were about that one.

// identities are the fields by which an object of a record is the same as before. Of an object of any other type all
// fields that are known have to be the same.
func identities(t reflect.Type) (fields []string, always bool) {
	switch t {
	case reflect.TypeFor[Routing](), reflect.TypeFor[ObjectMeta](), reflect.TypeFor[RoutingSpec]():
		return nil, true
	case reflect.TypeFor[RoutingTarget]():
		return []string{"buildID", "templateHash", "attempt"}, true
	case reflect.TypeFor[RecordedProposal]():
		return []string{"buildID", "templateHash", "from", "to"}, true
	case reflect.TypeFor[RecordedVersion](), reflect.TypeFor[SetAside]():
		return []string{"buildID"}, true
	case reflect.TypeFor[RecordedPool]():
		return []string{"name"}, true
	case reflect.TypeFor[RecordedResource]():
		return []string{"template"}, true
	case reflect.TypeFor[RecordedEvacuation]():
		return []string{"jobID"}, true
	case reflect.TypeFor[Promotion]():
		return []string{"buildID", "at"}, true
	case reflect.TypeFor[Bar]():
		return []string{"buildID", "templateHash"}, true
	case reflect.TypeFor[Hold]():
		return []string{"kind", "at"}, true
	case reflect.TypeFor[Retire](), reflect.TypeFor[Asked]():
		return []string{"by", "at"}, true
	}
	return nil, false
}

// KeepUnknown takes over the fields of an earlier version of the record that this release does not know.
func (r *Routing) KeepUnknown(was *Routing) { r.Whole = was.Whole }

// MarshalJSON writes the record with the fields that this release does not know.
func (r Routing) MarshalJSON() ([]byte, error) {
	type plain Routing
	data, err := json.Marshal(plain(r))
	if err != nil || r.Whole == nil {
		return data, err
	}
	return withUnknown(shapes().routing, data, r.Whole)
}

// UnmarshalJSON reads a record, and keeps what this release does not know of it.
func (r *Routing) UnmarshalJSON(data []byte) error {
	type plain Routing
	if err := json.Unmarshal(data, (*plain)(r)); err != nil {
		return err
	}
	r.Whole = nil
	whole, err := DecodeJSON(data)
	if err != nil {
		return err
	}
	if hasUnknown(shapes().routing, whole) {
		r.Whole, err = CanonicalJSON(data)
	}
	return err
}

// withUnknown gives an object as JSON with the fields of an earlier version of it that are not known.
func withUnknown(s *shape, now, was []byte) ([]byte, error) {
	a, err := DecodeJSON(now)
	if err != nil {
		return nil, fmt.Errorf("keep unknown fields: %w", err)
	}
	b, err := DecodeJSON(was)
	if err != nil {
		return nil, fmt.Errorf("keep unknown fields: %w", err)
	}
	keepUnknown(s, a, b)
	return appendAny(make([]byte, 0, len(now)+len(was)), a)
}

// keepUnknown adds to a value what an earlier version of it has that is not known.
func keepUnknown(s *shape, now, was any) {
	switch s.form {
	case formPointer:
		keepUnknown(s.elem, now, was)
	case formObject:
		a, b, ok := objects(now, was)
		if !ok || !s.identifies(a, b) {
			return
		}
		for key, value := range b {
			if f := s.field(key); f != nil {
				keepUnknown(f.shape, a[key], value)
			} else if !slices.Contains(s.dropped, key) {
				a[key] = value
			}
		}
	case formList:
		a, okA := now.([]any)
		b, okB := was.([]any)
		if !okA || !okB || s.elem.object() == nil {
			return
		}
		for _, item := range a {
			if at := slices.IndexFunc(b, func(earlier any) bool {
				return s.elem.object().identified(item, earlier)
			}); at >= 0 {
				keepUnknown(s.elem, item, b[at])
			}
		}
	case formMap:
		if a, b, ok := objects(now, was); ok {
			for key, value := range a {
				keepUnknown(s.elem, value, b[key])
			}
		}
	}
}

func objects(a, b any) (x, y map[string]any, ok bool) {
	x, okX := a.(map[string]any)
	y, okY := b.(map[string]any)
	return x, y, okX && okY
}

// object is the shape of the object that a value is, or points to; nil: the value is not an object.
func (s *shape) object() *shape {
	switch s.form {
	case formPointer:
		return s.elem.object()
	case formObject:
		return s
	}
	return nil
}

func (s *shape) field(name string) *shapeField {
	for i := range s.fields {
		if s.fields[i].name == name {
			return &s.fields[i]
		}
	}
	return nil
}

func (s *shape) identified(a, b any) bool {
	x, y, ok := objects(a, b)
	return ok && s.identifies(x, y)
}

// identifies reports whether two versions of an object are about the same.
func (s *shape) identifies(a, b map[string]any) bool {
	fields, by := identities(s.typ)
	if !by {
		fields = s.names()
	}
	return !slices.ContainsFunc(fields, func(name string) bool {
		return !sameKnown(s.field(name).shape, a[name], b[name])
	})
}

// sameKnown compares what is known of two values. What stands for nothing is the same as nothing.
func sameKnown(s *shape, a, b any) bool {
	switch s.form {
	case formPointer:
		return sameKnown(s.elem, a, b)
	case formObject:
		x, y, ok := objects(a, b)
		return isNothing(a) && isNothing(b) || ok && !slices.ContainsFunc(s.fields, func(f shapeField) bool {
			return !sameKnown(f.shape, x[f.name], y[f.name])
		})
	}
	return isNothing(a) && isNothing(b) || reflect.DeepEqual(a, b)
}

func isNothing(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case json.Number:
		return v == "0"
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// hasUnknown reports whether a value has fields that are not known, at any depth.
func hasUnknown(s *shape, v any) bool {
	switch s.form {
	case formPointer:
		return hasUnknown(s.elem, v)
	case formObject:
		object, _ := v.(map[string]any)
		for key, value := range object {
			f := s.field(key)
			if f == nil && !slices.Contains(s.dropped, key) || f != nil && hasUnknown(f.shape, value) {
				return true
			}
		}
	case formList:
		list, _ := v.([]any)
		return slices.ContainsFunc(list, func(item any) bool { return hasUnknown(s.elem, item) })
	case formMap:
		object, _ := v.(map[string]any)
		for _, value := range object {
			if hasUnknown(s.elem, value) {
				return true
			}
		}
	}
	return false
}
