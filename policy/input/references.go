package input

import (
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// References is the part of the input with what versions name. It is there only where a change is judged, and only
// where rules look at it: it takes reading the whole repository, twice.
const References = "references"

// KeyAction is the part of the input with the action that is asked about.
const KeyAction = "action"

// RuleReferences is the rule of the library that looks at them.
const RuleReferences = "spec.references"

// referencesOf are the recorded versions with the objects that they name.
func referencesOf(versions []rollout.VersionReferences) ast.Value {
	return list(versions, func(o *object, v rollout.VersionReferences) {
		o.text("buildID", v.BuildID)
		o.text("state", string(v.State))
		o.flag("scaledDown", v.ScaledDown)
		o.put("objects", list(v.Objects, func(o *object, r rollout.Reference) {
			o.text("kind", r.Kind)
			o.text("name", r.Name)
			o.flag("optional", r.Optional)
			o.texts("files", r.Files)
			o.texts("removed", r.Removed)
		}))
		o.text("problem", v.Problem)
	})
}
