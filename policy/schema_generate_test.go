package policy

import (
	"encoding/json"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// goSource is what only the text of Go files says. Names are package.Type, fields package.Type.Field.
type goSource struct {
	// values of string types with constants, in their order.
	values map[string][]string
	// comments of types and fields.
	comments map[string]string
}

// readSource reads the packages whose types are in the input.
func readSource(t *testing.T) goSource {
	t.Helper()
	s := goSource{values: map[string][]string{}, comments: map[string]string{}}
	for _, dir := range []string{"../gitops/api/v1alpha1", "../internal/rollout"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			require.NoError(t, err)
			for _, d := range file.Decls {
				if g, ok := d.(*ast.GenDecl); ok {
					s.declaration(file.Name.Name+".", g)
				}
			}
		}
	}
	return s
}

func (s goSource) declaration(prefix string, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			typ, ok := spec.Type.(*ast.Ident)
			if d.Tok != token.CONST || !ok {
				continue
			}
			for _, v := range spec.Values {
				if text, ok := v.(*ast.BasicLit); ok && text.Kind == token.STRING {
					value, _ := strconv.Unquote(text.Value)
					s.values[prefix+typ.Name] = append(s.values[prefix+typ.Name], value)
				}
			}
		case *ast.TypeSpec:
			comment := spec.Doc
			if comment == nil && len(d.Specs) == 1 {
				comment = d.Doc
			}
			name := prefix + spec.Name.Name
			s.comments[name] = sentences(comment.Text())
			if fields, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range fields.Fields.List {
					for _, n := range f.Names {
						s.comments[name+"."+n.Name] = sentences(f.Doc.Text() + f.Comment.Text())
					}
				}
			}
		}
	}
}

// sentences are the words of a comment, without the markers of controller-gen.
func sentences(comment string) string {
	lines := slices.DeleteFunc(strings.Split(comment, "\n"), func(line string) bool { return strings.HasPrefix(line, "+") })
	return strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
}

// generator makes definitions from Go types, as their JSON is.
type generator struct {
	source      goSource
	definitions map[string]any
}

func newGenerator(t *testing.T) generator {
	return generator{readSource(t), map[string]any{}}
}

// nameOf a type in the schema: its package and its name; "" for those without.
func nameOf(t reflect.Type) string {
	if t.PkgPath() == "" || t.Name() == "" {
		return ""
	}
	pkg := path.Base(t.PkgPath())
	if strings.HasPrefix(t.PkgPath(), "k8s.io/") && pkg == "v1" {
		pkg = path.Base(path.Dir(t.PkgPath())) // core, apps, meta
	}
	return pkg + "." + t.Name()
}

// define adds the definition of a string type.
func (g generator) define(name string) map[string]any {
	d := map[string]any{"type": "string", "enum": g.source.values[name]}
	if comment := g.source.comments[name]; comment != "" {
		d["description"] = comment
	}
	g.definitions[name] = d
	return map[string]any{"$ref": "#/definitions/" + name}
}

func (g generator) of(t reflect.Type) map[string]any {
	instant := map[string]any{"type": "string", "format": "date-time"}
	switch t {
	case reflect.TypeFor[v1alpha1.Duration]():
		return map[string]any{"type": "string"}
	case reflect.TypeFor[v1alpha1.Time](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return instant
	case reflect.TypeFor[v1alpha1.PodTemplate]():
		return g.of(reflect.TypeFor[corev1.PodTemplateSpec]())
	case reflect.TypeFor[json.RawMessage]():
		return map[string]any{}
	case reflect.TypeFor[metav1.FieldsV1]():
		return map[string]any{"type": "object"}
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString]():
		return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "number"}}}
	}
	if name := nameOf(t); g.source.values[name] != nil {
		return g.define(name)
	}
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Pointer:
		return g.of(t.Elem())
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": g.of(t.Elem())}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": g.of(t.Elem())}
	case reflect.Struct:
		return g.object(t)
	}
	panic("no schema for " + t.String())
}

func (g generator) object(t reflect.Type) map[string]any {
	name := nameOf(t)
	reference := map[string]any{"$ref": "#/definitions/" + name}
	if _, ok := g.definitions[name]; ok {
		return reference
	}
	properties := map[string]any{}
	d := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	g.definitions[name] = d // before its fields: types may be recursive
	comments := g.comments(t)
	if comments[""] != "" {
		d["description"] = comments[""]
	}
	for _, f := range fieldsOf(t) {
		p := g.of(f.Type)
		if f.Type == reflect.TypeFor[json.RawMessage]() && f.Name == "Strategy" {
			p = g.of(reflect.TypeFor[appsv1.DeploymentStrategy]()) // kept as it was written, and checked against this
		}
		if comment := comments[jsonName(f)]; comment != "" && p["$ref"] == nil {
			p["description"] = comment
		}
		properties[jsonName(f)] = p
	}
	return reference
}

// comments of a type (under "") and of its fields by their JSON names. Of Kubernetes' own they are one sentence each.
func (g generator) comments(t reflect.Type) map[string]string {
	out := map[string]string{}
	if k, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		for field, text := range k.SwaggerDoc() {
			out[field] = new(doc.Package).Synopsis(text)
		}
		return out
	}
	name := nameOf(t)
	out[""] = g.source.comments[name]
	for _, f := range fieldsOf(t) {
		out[jsonName(f)] = g.source.comments[name+"."+f.Name]
	}
	return out
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// fieldsOf a struct in JSON, those of embedded structs among them.
func fieldsOf(t reflect.Type) []reflect.StructField {
	var out []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		switch name := jsonName(f); {
		case !f.IsExported() || name == "-":
		case f.Anonymous && name == "":
			out = append(out, fieldsOf(f.Type)...)
		case name != "":
			out = append(out, f)
		}
	}
	return out
}

// filler gives every field of a value something that is not left out of JSON, always the same. Texts are all alike, so
// that a build ID is found wherever it is looked for.
type filler struct{ source goSource }

func (f filler) fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch to := v.Addr().Interface().(type) {
	case *time.Time:
		*to = now
		return
	case *v1alpha1.Time:
		*to = v1alpha1.NewTime(now)
		return
	case *metav1.Time:
		*to = metav1.NewTime(now)
		return
	case *v1alpha1.Duration:
		to.Duration = time.Hour
		return
	case *json.RawMessage:
		*to = json.RawMessage(`{"key":"value"}`)
		return
	case *metav1.FieldsV1:
		to.SetRawString(`{"f:metadata":{}}`)
		return
	case *resource.Quantity:
		*to = resource.MustParse("1500m")
		return
	case *intstr.IntOrString:
		*to = intstr.FromString("25%")
		return
	case *v1alpha1.PodTemplate:
		to.Raw, to.FirstImage = encoded[corev1.PodTemplateSpec](t, f), "text"
		return
	case *v1alpha1.WorkerDeploymentSpec:
		f.parts(t, v)
		to.Strategy = encoded[appsv1.DeploymentStrategy](t, f)
		return
	}
	f.parts(t, v)
}

func encoded[T any](t *testing.T, f filler) json.RawMessage {
	t.Helper()
	var v T
	f.fill(t, reflect.ValueOf(&v).Elem())
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}

func (f filler) parts(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
		if values := f.source.values[nameOf(v.Type())]; len(values) > 0 {
			v.SetString(values[0])
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.fill(t, v.Index(0))
	case reflect.Map:
		key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(t, key)
		f.fill(t, elem)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, elem)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(t, v.Field(i))
			}
		}
	default:
		require.Fail(t, "cannot fill "+v.Type().String())
	}
}

// The values of a string type are read from the source, so that one that is added is in the schema too.
func TestSourceHasTheValues(t *testing.T) {
	s := readSource(t)
	require.Equal(t, []string{"Workflow", "Activity", "Nexus"}, s.values["rollout.QueueType"])
	require.True(t, slices.Contains(s.values["rollout.ActionKind"], "TerminateWorkflows"))
	require.NotEmpty(t, s.comments["v1alpha1.Analysis.MinSamples"])
}
