package forgetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// Contract is the description of an API, as OpenAPI.
type Contract struct {
	doc *openapi3.T
	// general are answers that the forge documents for all its operations, and not with each: schemas by status.
	general map[int]*openapi3.SchemaRef
}

// LoadContract reads a description. The general answers are names of its schemas, by status.
func LoadContract(document []byte, general map[int]string) (*Contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return nil, fmt.Errorf("read the contract: %w", err)
	}
	c := &Contract{doc: doc, general: map[int]*openapi3.SchemaRef{}}
	for status, name := range general {
		if c.general[status] = doc.Components.Schemas[name]; c.general[status] == nil {
			return nil, fmt.Errorf("read the contract: no schema %q", name)
		}
	}
	return c, nil
}

// exchange is a request and the answer to it.
type exchange struct {
	path    string // of the contract, with {names}
	params  map[string]string
	request *http.Request
	sent    []byte
	status  int
	reply   []byte
}

// operation is what the contract says of a method and a path, or nil.
func (c *Contract) operation(method, path string) (*openapi3.PathItem, *openapi3.Operation) {
	item := c.doc.Paths.Value(path)
	if item == nil {
		return nil, nil
	}
	return item, item.GetOperation(method)
}

// check tells what of an exchange is not in the contract.
func (c *Contract) check(x exchange) (wrong []string) {
	item, operation := c.operation(x.request.Method, x.path)
	if operation == nil {
		return []string{"the operation is not documented"}
	}
	request := x.request.Clone(context.Background())
	request.Body = io.NopCloser(bytes.NewReader(x.sent))
	input := &openapi3filter.RequestValidationInput{
		Request: request, PathParams: x.params,
		Route: &routers.Route{Spec: c.doc, Path: x.path, PathItem: item, Method: x.request.Method,
			Operation: operation},
		Options: &openapi3filter.Options{MultiError: true, SkipSettingDefaults: true,
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if err := openapi3filter.ValidateRequest(context.Background(), input); err != nil {
		wrong = append(wrong, "request: "+short(err))
	}
	wrong = append(wrong, c.parameters(operation, item, x.request)...)
	if len(x.sent) > 0 {
		if operation.RequestBody == nil {
			wrong = append(wrong, "request: a body is not documented")
		} else if media := operation.RequestBody.Value.GetMediaType("application/json"); media != nil {
			wrong = append(wrong, prefixed("request: ", undocumented(media.Schema, x.sent))...)
		}
	}
	return append(wrong, c.checkReply(operation, input, x)...)
}

func (c *Contract) checkReply(operation *openapi3.Operation, input *openapi3filter.RequestValidationInput,
	x exchange) (wrong []string) {
	schema, documented := c.reply(operation, x.status)
	switch {
	case !documented:
		return []string{fmt.Sprintf("reply: HTTP %d is not documented", x.status)}
	case schema == nil && len(x.reply) > 0:
		return []string{"reply: a body is not documented"}
	case schema == nil:
		return nil
	case !described(operation, x.status): // one of the general ones
		var value any
		if err := json.Unmarshal(x.reply, &value); err != nil {
			return []string{"reply: " + err.Error()}
		}
		if err := schema.Value.VisitJSON(value); err != nil {
			wrong = append(wrong, "reply: "+short(err))
		}
	default:
		reply := &openapi3filter.ResponseValidationInput{
			RequestValidationInput: input, Status: x.status, Header: http.Header{"Content-Type": {"application/json"}},
			Options: &openapi3filter.Options{MultiError: true, IncludeResponseStatus: true},
		}
		if err := openapi3filter.ValidateResponse(context.Background(), reply.SetBodyBytes(x.reply)); err != nil {
			wrong = append(wrong, "reply: "+short(err))
		}
	}
	return append(wrong, prefixed("reply: ", undocumented(schema, x.reply))...)
}

// reply is the schema of an answer; nil if it has no body.
func (c *Contract) reply(operation *openapi3.Operation, status int) (schema *openapi3.SchemaRef, documented bool) {
	response := operation.Responses.Status(status)
	if described(operation, status) {
		return response.Value.Content.Get("application/json").Schema, true
	}
	schema, documented = c.general[status]
	return schema, documented || response != nil
}

// described says that the operation tells itself what is in an answer, and does not leave it to what is told of all
// refusals.
func described(operation *openapi3.Operation, status int) bool {
	response := operation.Responses.Status(status)
	return response != nil && response.Value.Content.Get("application/json") != nil
}

func (c *Contract) parameters(operation *openapi3.Operation, item *openapi3.PathItem,
	r *http.Request) (wrong []string) {
	for _, name := range slices.Sorted(maps.Keys(r.URL.Query())) {
		if operation.Parameters.GetByInAndName("query", name) == nil &&
			item.Parameters.GetByInAndName("query", name) == nil {
			wrong = append(wrong, fmt.Sprintf("request: the parameter %q is not documented", name))
		}
	}
	return wrong
}

// short is an error without the schema that it repeats.
func short(err error) string {
	var schema *openapi3.SchemaError
	text := err.Error()
	if errors.As(err, &schema) {
		text = "/" + strings.Join(schema.JSONPointer(), "/") + ": " + schema.Reason
	}
	return text[:min(len(text), 800)]
}

func prefixed(prefix string, all []string) []string {
	for i := range all {
		all[i] = prefix + all[i]
	}
	return all
}

// undocumented are the fields of a text that a schema does not name. OpenAPI lets them pass.
func undocumented(schema *openapi3.SchemaRef, text []byte) []string {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return []string{err.Error()}
	}
	return strangers(parts(schema), value, "")
}

// parts are a schema and all that it is composed of.
func parts(refs ...*openapi3.SchemaRef) (all []*openapi3.Schema) {
	for _, ref := range refs {
		if ref == nil || ref.Value == nil {
			continue
		}
		all = append(all, ref.Value)
		for _, of := range []openapi3.SchemaRefs{ref.Value.AllOf, ref.Value.AnyOf, ref.Value.OneOf} {
			all = append(all, parts(of...)...)
		}
	}
	return all
}

func strangers(schemas []*openapi3.Schema, value any, at string) (found []string) {
	switch v := value.(type) {
	case []any:
		var items []*openapi3.Schema
		for _, s := range schemas {
			items = append(items, parts(s.Items)...)
		}
		for i, one := range v {
			found = append(found, strangers(items, one, fmt.Sprintf("%s/%d", at, i))...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			below, known := property(schemas, name)
			if !known {
				found = append(found, fmt.Sprintf("the field %s/%s is not documented", at, name))
				continue
			}
			found = append(found, strangers(below, v[name], at+"/"+name)...)
		}
	}
	return found
}

// property is what is known of a field. One is known, too, in what has no fields at all in its description.
func property(schemas []*openapi3.Schema, name string) (below []*openapi3.Schema, known bool) {
	free := true
	for _, s := range schemas {
		if ref := s.Properties[name]; ref != nil {
			below, known = append(below, parts(ref)...), true
		}
		if len(s.Properties) > 0 {
			free = false
		}
	}
	if known {
		return below, true
	}
	for _, s := range schemas {
		if s.AdditionalProperties.Schema != nil {
			below, known = append(below, parts(s.AdditionalProperties.Schema)...), true
		}
		if has := s.AdditionalProperties.Has; has != nil && *has {
			known = true
		}
	}
	return below, known || free
}
