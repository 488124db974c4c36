package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/input"
)

// Document is what policies see of one proposal: the input of Input's comment for each of its actions, which share all
// but the action. As JSON it is one input with a list, actions, in place of action; DecodeDocument reads that back, so
// that a decision that was recorded is made again on exactly what it was made on.
//
// A Document does not change and is safe for concurrent use.
type Document struct {
	now         time.Time
	environment string
	deployment  rollout.Name
	waivers     []v1alpha1.Waiver
	// subject is what rampart.spec sees: now, environment, deployment, git, waivers. world is the rest but for the
	// action.
	subject, world []input.Field
	actions        []matter
}

// matter is one action: what policies see of it, and what judging depends on beside that.
type matter struct {
	id      string
	kind    rollout.ActionKind
	buildID string
	lowers  bool
	// lowerDrift says that the action is about routing that gives less traffic than is desired.
	lowerDrift bool
	value      ast.Value
}

// NewDocument makes the document of a proposal. It fails on facts that are no JSON.
func NewDocument(s rollout.Snapshot, p rollout.Proposal) (*Document, error) {
	subject, err := input.Subject(&s)
	if err != nil {
		return nil, err
	}
	world, err := input.World(&s, &p)
	if err != nil {
		return nil, err
	}
	d := &Document{now: s.Now.Truncate(time.Second), environment: s.Environment.Name, deployment: s.Deployment,
		waivers: s.Waivers, subject: subject, world: world, actions: make([]matter, 0, len(p.Actions))}
	for i := range p.Actions {
		d.actions = append(d.actions, matterOf(&p.Actions[i]))
	}
	return d, nil
}

func matterOf(a *rollout.Action) matter {
	return matter{id: a.ID, kind: a.Kind, buildID: a.BuildID, lowers: a.Lowers(), value: input.Action(a),
		lowerDrift: a.Drift != nil && a.Drift.Kind == rollout.DriftRouting && a.Drift.Direction == rollout.DriftLower}
}

// keyActions is the key of a document that no input has; input.KeyAction is the one of an input that no document has.
const keyActions = "actions"

// decoded is what judging takes from a document's JSON, beside its values.
type decoded struct {
	Now         time.Time `json:"now"`
	Environment struct {
		Name string `json:"name"`
	} `json:"environment"`
	Deployment rollout.Name      `json:"deployment"`
	Waivers    []v1alpha1.Waiver `json:"waivers"`
	Actions    []decodedAction   `json:"actions"`
}

type decodedAction struct {
	ID      string             `json:"id"`
	Kind    rollout.ActionKind `json:"kind"`
	BuildID string             `json:"buildID"`
	Lowers  bool               `json:"lowers"`
	Drift   *struct {
		Kind      rollout.DriftKind      `json:"kind"`
		Direction rollout.DriftDirection `json:"direction"`
	} `json:"drift"`
}

// DecodeDocument reads a document that was written as JSON. One input with an action is a document with that action
// alone, whose ID may be left out: it is made of the action then, such as Ramp/v2@25%.
func DecodeDocument(data []byte) (*Document, error) {
	value, err := ast.ValueFromReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("decode input: %w", err)
	}
	whole, ok := value.(ast.Object)
	if !ok {
		return nil, fmt.Errorf("decode input: %s where an object is expected", input.Article(ast.NewTerm(value)))
	}
	if one := whole.Get(ast.InternedTerm(input.KeyAction)); one != nil {
		one = withID(one)
		whole = ast.NewObject(append(pairs(whole, input.KeyAction),
			[2]*ast.Term{ast.InternedTerm(keyActions), ast.ArrayTerm(one)})...)
		if data, err = json.Marshal(plainOf(whole)); err != nil {
			return nil, fmt.Errorf("encode input: %w", err)
		}
	}
	var head decoded
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, undecoded(whole, err)
	}
	d := &Document{now: head.Now, environment: head.Environment.Name, deployment: head.Deployment,
		waivers: head.Waivers}
	for _, pair := range pairs(whole, keyActions) {
		f := input.Field{Key: string(pair[0].Value.(ast.String)), Value: pair[1].Value}
		if slices.Contains(input.SpecKeys(), f.Key) {
			d.subject = append(d.subject, f)
		} else {
			d.world = append(d.world, f)
		}
	}
	return d, d.decodeActions(head.Actions, whole)
}

// undecoded says what is wrong with a document that cannot be judged: what does not fit the schema, or else the error.
func undecoded(whole ast.Object, err error) error {
	m, document := misfits{}, input.Schema()
	for _, pair := range pairs(whole, keyActions) {
		m.field(document.Root, ast.Ref{ast.InputRootDocument}, pair[0], pair[1])
	}
	if list := whole.Get(ast.InternedTerm(keyActions)); list != nil {
		if actions, ok := list.Value.(*ast.Array); ok {
			actions.Foreach(func(t *ast.Term) {
				m.field(document.Root, ast.Ref{ast.InputRootDocument}, ast.InternedTerm(input.KeyAction), t)
			})
		} else {
			m.add("input.%s is %s where a list is expected", keyActions, input.Article(list))
		}
	}
	if len(m.said) > 0 {
		return fmt.Errorf("decode input: %s", strings.Join(m.said, "; "))
	}
	if when := (*time.ParseError)(nil); errors.As(err, &when) {
		return fmt.Errorf("decode input: now or another time is not in RFC 3339, such as 2026-03-03T12:00:00Z: %w", err)
	}
	return fmt.Errorf("decode input: %w", err)
}

// withID gives the one action of an input an ID if it has none.
func withID(action *ast.Term) *ast.Term {
	const keyID = "id"
	o, ok := action.Value.(ast.Object)
	if !ok || o.Get(ast.InternedTerm(keyID)) != nil {
		return action
	}
	kind, _ := input.Text(o, "kind")
	id := kind
	if build, _ := input.Text(o, "buildID"); build != "" {
		id += "/" + build
	}
	if to := o.Get(ast.InternedTerm("to")); to != nil && kind == string(rollout.Ramp) {
		id += "@" + to.Value.String() + "%"
	}
	return ast.ObjectTerm(append(pairs(o, keyID), [2]*ast.Term{ast.InternedTerm(keyID), ast.StringTerm(id)})...)
}

func (d *Document) decodeActions(heads []decodedAction, whole ast.Object) error {
	list := whole.Get(ast.InternedTerm(keyActions))
	if list == nil {
		return fmt.Errorf("decode input: neither %s nor %s", keyActions, input.KeyAction)
	}
	for i, a := range heads {
		term := list.Value.(*ast.Array).Elem(i) // it decoded as a list
		m := matter{id: a.ID, kind: a.Kind, buildID: a.BuildID, lowers: a.Lowers, value: term.Value}
		m.lowerDrift = a.Drift != nil && a.Drift.Kind == rollout.DriftRouting && a.Drift.Direction == rollout.DriftLower
		d.actions = append(d.actions, m)
	}
	return nil
}

// pairs are an object's pairs with a string for a key, but one.
func pairs(o ast.Object, but string) [][2]*ast.Term {
	out := make([][2]*ast.Term, 0, o.Len())
	o.Foreach(func(k, v *ast.Term) {
		if key, ok := k.Value.(ast.String); ok && string(key) != but {
			out = append(out, [2]*ast.Term{k, v})
		}
	})
	return out
}

// plainOf gives a value as encoding/json has it. Values of a document have nothing that JSON lacks.
func plainOf(v ast.Value) any {
	out, err := ast.JSON(v)
	if err != nil {
		return nil
	}
	return out
}

// MarshalJSON gives the document as one object, its keys sorted.
func (d *Document) MarshalJSON() ([]byte, error) {
	actions := make([]*ast.Term, 0, len(d.actions))
	for _, m := range d.actions {
		actions = append(actions, ast.NewTerm(m.value))
	}
	all := input.Field{Key: keyActions, Value: ast.NewArray(actions...)}
	plain, err := ast.JSON(d.with(append(slices.Clip(d.world), all)))
	if err != nil {
		return nil, fmt.Errorf("encode input: %w", err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(plain); err != nil {
		return nil, fmt.Errorf("encode input: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// Now is the time of the decision, in whole seconds.
func (d *Document) Now() time.Time { return d.now }

// Environment names the environment.
func (d *Document) Environment() string { return d.environment }

// Deployment names the worker deployment.
func (d *Document) Deployment() rollout.Name { return d.deployment }

// Actions are the IDs of the actions, in the order of the proposal.
func (d *Document) Actions() []string {
	out := make([]string, 0, len(d.actions))
	for _, m := range d.actions {
		out = append(out, m.id)
	}
	return out
}

// Input is what policies see when they are asked about an action; false: there is no action of that ID.
func (d *Document) Input(actionID string) (ast.Value, bool) {
	for i := range d.actions {
		if d.actions[i].id == actionID {
			return d.about(&d.actions[i]), true
		}
	}
	return nil, false
}

// SpecInput is what policies of rampart.spec see.
func (d *Document) SpecInput() ast.Value { return d.with(nil) }

// about is the input about one action.
func (d *Document) about(m *matter) ast.Value {
	return d.with(append(slices.Clip(d.world), input.Field{Key: input.KeyAction, Value: m.value}))
}

func (d *Document) with(more []input.Field) ast.Value { return input.Object(d.subject, more) }
