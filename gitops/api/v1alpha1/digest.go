package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Digest names what the user asks for: sha256: and the hex of SHA-256 over the canonical JSON of metadata.name,
// metadata.namespace and spec. Comments, formatting, the order of keys, the kind's old or new name, early spellings,
// labels, annotations and the status do not matter. A field that holds its default does not either, whether it was
// written or left out: so a Rampart that knows more fields gives the same digest.
func (w *WorkerDeployment) Digest() string {
	return digestOf(func(b []byte) []byte {
		b = append(b, `{"name":`...)
		b = append(appendString(b, w.Metadata.Name), `,"namespace":`...)
		b = append(appendString(b, w.Metadata.Namespace), `,"spec":`...)
		return append(appendDifferent(b, shapes().spec, reflect.ValueOf(&w.Spec).Elem()), '}')
	})
}

// Seal puts the digest of the spec into the annotation AnnotationRoutingDigest. It is sha256: and the hex of SHA-256
// over its canonical JSON as it is written, with the fields that this release does not know. So a release that knows
// more of them, or fewer, gives the same digest.
func (r *Routing) Seal() {
	annotations := maps.Clone(r.Metadata.Annotations)
	if annotations == nil {
		annotations = make(map[string]string, 1)
	}
	annotations[AnnotationRoutingDigest] = r.digest()
	r.Metadata.Annotations = annotations
}

// Edited says whether the spec differs from the one that was sealed, or was never sealed. A person's change of a
// comment, of formatting or of the metadata does not count as an edit. The seal does not protect: anybody can make
// one.
func (r *Routing) Edited() bool {
	return r.Metadata.Annotations[AnnotationRoutingDigest] != r.digest()
}

func (r *Routing) digest() string {
	return digestOf(func(b []byte) []byte {
		from := len(b)
		b = appendWritten(b, shapes().routingSpec, reflect.ValueOf(&r.Spec).Elem())
		if r.Whole == nil {
			return b
		}
		var whole struct{ Spec json.RawMessage }
		err := json.Unmarshal(r.Whole, &whole)
		if err == nil {
			var all []byte
			if all, err = withUnknown(shapes().routingSpec, b[from:], whole.Spec); err == nil {
				return append(b[:from], all...)
			}
		}
		return append(b, err.Error()...) // of what did not come by Decode: no seal fits
	})
}

// digestOf gives the digest of what is appended.
func digestOf(appendTo func([]byte) []byte) string {
	sum := sha256.Sum256(appendTo(make([]byte, 0, 4<<10)))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// AuthMode is how the pods of a connection prove who they are.
type AuthMode string

// The ways to authenticate.
const (
	AuthNone      AuthMode = "None"
	AuthMutualTLS AuthMode = "MutualTLS"
	AuthAPIKey    AuthMode = "APIKey"
)

// Auth gives the connection's mode: mutual TLS if it names a Secret for that, else the API key, else none.
func (c ConnectionSpec) Auth() AuthMode {
	switch {
	case c.MutualTLSSecretRef != nil:
		return AuthMutualTLS
	case c.APIKeySecretRef != nil:
		return AuthAPIKey
	}
	return AuthNone
}

// CACertSecret is the Secret with certificates that pods trust in place of the system's; "": none.
func (c ConnectionSpec) CACertSecret() string {
	if c.TLS == nil || c.TLS.CACertSecretRef == nil {
		return ""
	}
	return c.TLS.CACertSecretRef.Name
}

// Hash is the hex of SHA-256 over everything in a connection that pods see. That is a JSON array of strings, so that no
// two connections share a hash. It has the address, the server name, the mode, the Secret's name, its key and whether
// it is optional. The Secret with certificates that pods trust follows, if there is one. The content of the Secrets is
// not in it. (The in-cluster controller's hash joins the values bare and leaves out mode and key.)
func (c ConnectionSpec) Hash() string {
	var serverName, secret, key, optional string
	if c.TLS != nil {
		serverName = c.TLS.ServerName
	}
	switch c.Auth() {
	case AuthMutualTLS:
		secret = c.MutualTLSSecretRef.Name
	case AuthAPIKey:
		secret, key = c.APIKeySecretRef.Name, c.APIKeySecretRef.Key
		if c.APIKeySecretRef.Optional != nil && *c.APIKeySecretRef.Optional {
			optional = "optional"
		}
	}
	parts := []string{c.HostPort, serverName, string(c.Auth()), secret, key, optional}
	if ca := c.CACertSecret(); ca != "" {
		parts = append(parts, ca)
	}
	b := []byte{'['}
	for i, s := range parts {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, s)
	}
	sum := sha256.Sum256(append(b, ']'))
	return hex.EncodeToString(sum[:])
}

// leaving says which fields of objects are left out.
type leaving func(of *shape, f *shapeField, field reflect.Value) bool

// appendDifferent writes a decoded value as canonical JSON, without the fields that are as decoding leaves them when
// the user writes nothing.
func appendDifferent(b []byte, s *shape, v reflect.Value) []byte {
	return leaving(unwritten).append(b, s, v)
}

// appendWritten writes a decoded value as canonical JSON, without the fields that its JSON leaves out.
func appendWritten(b []byte, s *shape, v reflect.Value) []byte {
	return leaving(omitted).append(b, s, v)
}

func (left leaving) append(b []byte, s *shape, v reflect.Value) []byte {
	switch s.form {
	case formPointer:
		if v.IsNil() {
			return append(b, "null"...)
		}
		return left.append(b, s.elem, v.Elem())
	case formObject:
		return left.appendFields(b, s, v)
	case formMap:
		b = append(b, '{')
		keys := v.MapKeys()
		slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
		for i, key := range keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, key.String()), ':')
			b = left.append(b, s.elem, v.MapIndex(key))
		}
		return append(b, '}')
	case formList:
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			b = left.append(b, s.elem, v.Index(i))
		}
		return append(b, ']')
	case formString:
		return appendString(b, v.String())
	default:
		return appendValue(b, v)
	}
}

func (left leaving) appendFields(b []byte, s *shape, v reflect.Value) []byte {
	b = append(b, '{')
	first := true
	for i := range s.fields {
		f := &s.fields[i]
		field := v.FieldByIndex(f.index)
		if left(s, f, field) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendString(b, f.name), ':')
		b = left.append(b, f.shape, field)
	}
	return append(b, '}')
}

// unwritten reports whether a field is as decoding leaves it when the user writes nothing.
func unwritten(s *shape, f *shapeField, field reflect.Value) bool {
	var usual reflect.Value
	if s.unwritten.IsValid() {
		usual = s.unwritten.FieldByIndex(f.index)
	}
	return same(f.shape, field, usual)
}

// omitted reports whether JSON leaves a field out.
func omitted(_ *shape, f *shapeField, field reflect.Value) bool {
	switch f.omits {
	case omitsEmpty:
		switch field.Kind() {
		case reflect.Map, reflect.Slice, reflect.String:
			return field.Len() == 0
		case reflect.Struct:
			return false
		}
		return field.IsZero()
	case omitsZero:
		if z, ok := field.Interface().(interface{ IsZero() bool }); ok {
			return z.IsZero()
		}
		return field.IsZero()
	}
	return false
}

// same compares a field with the same field of an unwritten object: with no Value, where it has no default. An empty
// list or map is as good as none.
func same(s *shape, a, unwritten reflect.Value) bool {
	switch s.form {
	case formMap, formList:
		return a.Len() == 0 && (!unwritten.IsValid() || unwritten.Len() == 0)
	case formRaw:
		return a.Len() == 0
	}
	if !unwritten.IsValid() {
		return a.IsZero()
	}
	return reflect.DeepEqual(a.Interface(), unwritten.Interface())
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// appendValue writes what has a JSON form of its own. Its raw parts may have come by another way than Decode, so they
// are brought into canonical form. What has no JSON form at all can't have been decoded; it is written as null.
func appendValue(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		if !v.Type().Implements(marshaler) {
			return strconv.AppendInt(b, v.Int(), 10)
		}
	}
	switch x := v.Interface().(type) {
	case Time:
		if !x.IsZero() {
			return append(x.UTC().AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
		}
	case Duration:
		return appendString(b, x.String())
	case PodTemplate:
		if len(x.Raw) == 0 {
			return append(b, "null"...)
		}
		return append(b, x.Raw...)
	case json.RawMessage:
		return appendRaw(b, x)
	}
	data, err := json.Marshal(v.Interface())
	if err != nil {
		return append(b, "null"...)
	}
	return appendRaw(b, data)
}

// appendRaw writes JSON in canonical form, and null for text that is not JSON.
func appendRaw(b, raw []byte) []byte {
	canonical, err := CanonicalJSON(raw)
	if err != nil {
		return append(b, "null"...)
	}
	return append(b, canonical...)
}
