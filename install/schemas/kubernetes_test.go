package schemas

import (
	"go/doc"
	"path"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// kubernetes are definitions of Kubernetes' own types by their names, such as core.Container. A custom resource
// definition keeps a pod template without a schema; an editor can help with it.
type kubernetes map[string]any

// schemaOf a Go type, whose structs are added to the definitions.
func (k kubernetes) schemaOf(t reflect.Type) map[string]any {
	switch t {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return map[string]any{"type": "string", "format": "date-time"}
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString]():
		return map[string]any{"type": []string{"string", "number"}}
	case reflect.TypeFor[metav1.FieldsV1]():
		return map[string]any{"type": "object"}
	}
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Pointer:
		return k.schemaOf(t.Elem())
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": k.schemaOf(t.Elem())}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": k.schemaOf(t.Elem())}
	case reflect.Struct:
		return k.object(t)
	}
	panic("no schema for " + t.String()) // a test makes every schema
}

func (k kubernetes) object(t reflect.Type) map[string]any {
	name := path.Base(path.Dir(t.PkgPath())) + "." + t.Name() // k8s.io/api/core/v1: core
	out := map[string]any{"$ref": reference(name)}
	if k[name] != nil {
		return out
	}
	properties := map[string]any{}
	definition := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	k[name] = definition // before its fields: types may be recursive
	required := k.fields(t, properties)
	if len(required) > 0 {
		definition["required"] = required
	}
	return out
}

// fields adds a struct's fields, those of embedded structs among them, and gives the required ones.
func (k kubernetes) fields(t reflect.Type, properties map[string]any) (required []string) {
	texts := map[string]string{}
	if d, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		texts = d.SwaggerDoc()
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			required = append(required, k.fields(f.Type, properties)...)
			continue
		}
		property := k.schemaOf(f.Type)
		// beside a reference nothing counts
		if text := new(doc.Package).Synopsis(texts[name]); text != "" && property["$ref"] == nil {
			property["description"] = text
		}
		properties[name] = property
		if !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	return required
}
