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
	b := shaper{map[reflect.Type]*shape{}, enums()}
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

// enums are the values of our string types, by the type.
func enums() map[reflect.Type][]string {
	all := map[reflect.Type][]string{}
	enum(all, Manual, AllAtOnce, Progressive)
	enum[ConnectionKind](all, KindConnection, KindClusterConnection)
	enum(all, GateRollback, GateHold)
	enum(all, SamplesHold, SamplesAdvance)
	enum(all, EndFailed, EndTimedOut, EndTerminated, EndCanceled)
	enum(all, Direct, PullRequest)
	enum(all, ScopeStep, ScopeRollout)
	enum(all, CommitPerCycle, CommitPerDeployment)
	enum(all, StatusPerEnvironment, StatusPerWorkerDeployment, NoCommitStatuses)
	enum(all, ProposeCommits)
	enum(all, MergeCommit, MergeSquash, MergeRebase)
	enum(all, ArgoCD, Flux, Both)
	enum(all, RampProgressing, RampHealthy)
	enum(all, EnvCurrent, EnvWithLegacyNames)
	enum(all, StatusOn, StatusOff)
	enum(all, GuardOn, GuardOff)
	enum(all, WorkflowQueue, ActivityQueue, NexusQueue)
	enum(all, BuildIDTemplate, BuildIDCustom)
	enum(all, HoldManual, HoldDrift, HoldRejected, HoldReleased)
	enum(all, ProposeUpdate)
	enum(all, StateTarget, StateCurrent, StateRamping, StateDraining, StateDrained, StateInactive, StateNotRegistered)
	enum(all, NewVersions, AllVersions)
	enum(all, KeepCurrent, UnrouteProven, UnrouteAnyway)
	enum(all, LeftByPromotion, LeftByRollback, LeftByOutside)
	enum(all, AnswerApprove, AnswerNone)
	enum(all, GateCompletes, GateFails, GateTimesOut, GateCancels, GateEnds)
	enum(all, BatchCompletes, BatchFails)
	enum(all, EvacuateBySignal, EvacuateByMove, EvacuateByCancel, EvacuateByTermination)
	enum(all, EvacuationProposed, EvacuationApproved, EvacuationDeclined, EvacuationRunning, EvacuationCompleted,
		EvacuationFailed)
	enum(all, True, False, Unknown)
	return all
}

// enum adds the values of their type.
func enum[T ~string](to map[reflect.Type][]string, all ...T) {
	for _, v := range all {
		to[reflect.TypeFor[T]()] = append(to[reflect.TypeFor[T]()], string(v))
	}
}

// shaper builds shapes, each type once.
type shaper struct {
	shapes map[reflect.Type]*shape
	enums  map[reflect.Type][]string
}

func (b shaper) shape(t reflect.Type) *shape {
	if s, ok := b.shapes[t]; ok {
		return s
	}
	s := &shape{typ: t}
	b.shapes[t] = s // before its parts: types may be recursive
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
		s.form, s.enum = formString, b.enums[t]
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
