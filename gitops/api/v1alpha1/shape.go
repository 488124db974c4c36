package v1alpha1

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// form is how a Go type looks in JSON.
type form uint8

const (
	formString form = iota + 1
	formBool
	formInt
	formFloat
	formObject
	formMap
	formList
	formPointer
	formRaw         // any JSON, kept as it is
	formDuration    // our Duration
	formTime        // our Time, and Kubernetes'
	formTemplate    // our PodTemplate
	formQuantity    // 500m, 1Gi
	formIntOrString // 25%, 3
)

// shape is what decoding knows of a Go type. Shapes are built once and never changed.
type shape struct {
	form form
	typ  reflect.Type
	// fields of an object, sorted by name; those of embedded structs among them.
	fields []shapeField
	// dropped are the names of an object's fields that are accepted and not kept.
	dropped []string
	// elem of a pointer, a list or a map.
	elem *shape
	// inside is what raw JSON has to look like; nil: anything.
	inside *shape
	// enum are the values of a string; nil: any.
	enum []string
	// preset fills a new object with its defaults; nil: it has none.
	preset func(reflect.Value)
	// unwritten is an object as decoding leaves it where the user writes nothing, of an object that has defaults.
	unwritten reflect.Value
}

type shapeField struct {
	name  string
	index []int
	shape *shape
	// omits says when JSON leaves the field out.
	omits omission
}

// omission is when JSON leaves a field out.
type omission uint8

const (
	omitsNothing omission = iota + 1
	omitsEmpty
	omitsZero
)

func omissionOf(tag string) omission {
	options := strings.Split(tag, ",")[1:]
	switch {
	case slices.Contains(options, "omitzero"):
		return omitsZero
	case slices.Contains(options, "omitempty"):
		return omitsEmpty
	}
	return omitsNothing
}

func (s *shape) names() []string {
	names := make([]string, len(s.fields))
	for i, f := range s.fields {
		names[i] = f.name
	}
	return names
}

// shapeSet are the shapes of everything that is decoded.
type shapeSet struct {
	workerDeployment, connection, resourceTemplate, config, waiver, routing, simulation, status *shape
	// spec, routingSpec are what digests are made over.
	spec, routingSpec *shape
	podTemplate       *shape
}

// shapes are computed at the first use: the pod template alone has two hundred types.
var shapes = sync.OnceValue(func() *shapeSet {
	b := shaper{}
	s := &shapeSet{
		workerDeployment: b.shape(reflect.TypeFor[WorkerDeployment]()),
		connection:       b.shape(reflect.TypeFor[Connection]()),
		resourceTemplate: b.shape(reflect.TypeFor[WorkerResourceTemplate]()),
		config:           b.shape(reflect.TypeFor[Config]()),
		waiver:           b.shape(reflect.TypeFor[Waiver]()),
		routing:          b.shape(reflect.TypeFor[Routing]()),
		simulation:       b.shape(reflect.TypeFor[Simulation]()),
		status:           b.shape(reflect.TypeFor[WorkerDeploymentStatus]()),
		spec:             b.shape(reflect.TypeFor[WorkerDeploymentSpec]()),
		routingSpec:      b.shape(reflect.TypeFor[RoutingSpec]()),
		podTemplate:      b.shape(reflect.TypeFor[corev1.PodTemplateSpec]()),
	}
	// What a server fills in is accepted, so that an object read from a cluster can be put into Git as it is.
	b.shape(reflect.TypeFor[ObjectMeta]()).dropped = []string{
		"clusterName", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers",
		"generateName", "generation", "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid",
	}
	s.workerDeployment.fields = slices.DeleteFunc(s.workerDeployment.fields, func(f shapeField) bool {
		return f.name == "status"
	})
	for _, withStatus := range []*shape{s.workerDeployment, s.connection, s.resourceTemplate} {
		withStatus.dropped = []string{"status"}
	}
	for i, f := range s.spec.fields {
		if f.name == "strategy" {
			s.spec.fields[i].shape = &shape{form: formRaw, typ: f.shape.typ,
				inside: b.shape(reflect.TypeFor[appsv1.DeploymentStrategy]())}
		}
	}
	return s
})

// enumOf gives the values of our string types; of any other type there are none.
func enumOf(t reflect.Type) []string {
	switch t {
	case reflect.TypeFor[RolloutKind]():
		return values(Manual, AllAtOnce, Progressive)
	case reflect.TypeFor[ConnectionKind]():
		return []string{KindConnection, KindClusterConnection}
	case reflect.TypeFor[OnGateFailure]():
		return values(GateRollback, GateHold)
	case reflect.TypeFor[TooFewSamples]():
		return values(SamplesHold, SamplesAdvance)
	case reflect.TypeFor[FailedEnd]():
		return values(EndFailed, EndTimedOut, EndTerminated, EndCanceled)
	case reflect.TypeFor[ApprovalMode]():
		return values(Direct, PullRequest)
	case reflect.TypeFor[ApprovalScope]():
		return values(ScopeStep, ScopeRollout)
	case reflect.TypeFor[CommitsPer]():
		return values(CommitPerCycle, CommitPerDeployment)
	case reflect.TypeFor[CommitStatuses]():
		return values(StatusPerEnvironment, StatusPerWorkerDeployment, NoCommitStatuses)
	case reflect.TypeFor[OnProtectedBranch]():
		return values(ProposeCommits)
	case reflect.TypeFor[MergeMethod]():
		return values(MergeCommit, MergeSquash, MergeRebase)
	case reflect.TypeFor[CDTool]():
		return values(ArgoCD, Flux, Both)
	case reflect.TypeFor[RampHealth]():
		return values(RampProgressing, RampHealthy)
	case reflect.TypeFor[WorkerEnv]():
		return values(EnvCurrent, EnvWithLegacyNames)
	case reflect.TypeFor[StatusMode]():
		return values(StatusOn, StatusOff)
	case reflect.TypeFor[Guard]():
		return values(GuardOn, GuardOff)
	case reflect.TypeFor[QueueType]():
		return values(WorkflowQueue, ActivityQueue, NexusQueue)
	case reflect.TypeFor[BuildIDSource]():
		return values(BuildIDTemplate, BuildIDCustom)
	case reflect.TypeFor[HoldKind]():
		return values(HoldManual, HoldDrift, HoldRejected, HoldReleased)
	case reflect.TypeFor[ProposalKind]():
		return values(ProposeUpdate)
	case reflect.TypeFor[VersionState]():
		return values(StateTarget, StateCurrent, StateRamping, StateDraining, StateDrained, StateInactive,
			StateNotRegistered)
	case reflect.TypeFor[ApplyTo]():
		return values(NewVersions, AllVersions)
	case reflect.TypeFor[RetireCurrent]():
		return values(KeepCurrent, UnrouteProven, UnrouteAnyway)
	case reflect.TypeFor[LeftBy]():
		return values(LeftByPromotion, LeftByRollback, LeftByOutside)
	case reflect.TypeFor[ApprovalAnswer]():
		return values(AnswerApprove, AnswerNone)
	case reflect.TypeFor[GateOutcome]():
		return values(GateCompletes, GateFails, GateTimesOut, GateCancels, GateEnds)
	case reflect.TypeFor[EvacuationOutcome]():
		return values(BatchCompletes, BatchFails)
	case reflect.TypeFor[EvacuationStage]():
		return values(EvacuateBySignal, EvacuateByMove, EvacuateByCancel, EvacuateByTermination)
	case reflect.TypeFor[EvacuationState]():
		return values(EvacuationProposed, EvacuationApproved, EvacuationDeclined, EvacuationRunning,
			EvacuationCompleted, EvacuationFailed)
	case reflect.TypeFor[ConditionStatus]():
		return values(True, False, Unknown)
	}
	return nil
}

func values[T ~string](all ...T) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = string(v)
	}
	return out
}

// shaper builds shapes, each type once.
type shaper map[reflect.Type]*shape

func (b shaper) shape(t reflect.Type) *shape {
	if s, ok := b[t]; ok {
		return s
	}
	s := &shape{typ: t}
	b[t] = s // before its parts: types may be recursive
	switch t {
	case reflect.TypeFor[Duration]():
		s.form = formDuration
	case reflect.TypeFor[Time](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		s.form = formTime
	case reflect.TypeFor[PodTemplate]():
		s.form, s.inside = formTemplate, b.shape(reflect.TypeFor[corev1.PodTemplateSpec]())
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[metav1.FieldsV1]():
		s.form = formRaw
	case reflect.TypeFor[resource.Quantity]():
		s.form = formQuantity
	case reflect.TypeFor[intstr.IntOrString]():
		s.form = formIntOrString
	default:
		b.byKind(s, t)
	}
	return s
}

func (b shaper) byKind(s *shape, t reflect.Type) {
	switch t.Kind() {
	case reflect.String:
		s.form, s.enum = formString, enumOf(t)
	case reflect.Bool:
		s.form = formBool
	case reflect.Int, reflect.Int32, reflect.Int64:
		s.form = formInt
	case reflect.Float64:
		s.form = formFloat
	case reflect.Pointer:
		s.form, s.elem = formPointer, b.shape(t.Elem())
	case reflect.Map:
		s.form, s.elem = formMap, b.shape(t.Elem())
	case reflect.Slice:
		s.form, s.elem = formList, b.shape(t.Elem())
	case reflect.Struct:
		s.form, s.preset = formObject, presetOf(t)
		if s.preset != nil {
			s.unwritten = reflect.New(t).Elem()
			s.preset(s.unwritten)
		}
		s.fields = b.fields(t, nil)
		slices.SortFunc(s.fields, func(a, b shapeField) int { return strings.Compare(a.name, b.name) })
	default:
		// A kind that no type of ours or of Kubernetes' pod template has: a test walks them all.
		panic("no shape for " + t.String())
	}
}

func (b shaper) fields(t reflect.Type, index []int) []shapeField {
	var out []shapeField
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := append(slices.Clip(index), i)
		switch {
		case !f.IsExported() || name == "-":
		case f.Anonymous && name == "":
			out = append(out, b.fields(f.Type, at)...)
		case name != "":
			out = append(out, shapeField{name: name, index: at, shape: b.shape(f.Type),
				omits: omissionOf(f.Tag.Get("json"))})
		}
	}
	return out
}
