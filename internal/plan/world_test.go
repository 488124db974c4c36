package plan

import (
	"crypto/sha1"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// world is Git, Temporal, a cluster and a bot without any memory, on a clock of its own.
type world struct {
	t       require.TestingT
	server  *server
	given   *given // where the spec, the configuration and the names are from
	files   map[string]string
	read    *rollout.Record    // what files say; nil: they changed since
	decoded map[string]decoded // by file
	// commits are their first lines.
	commits []string
	judge   func(rollout.Proposal) rollout.Verdicts
	// dies says where the bot dies in the next cycle.
	dies site
	// lives, if it is there, spares the bot with some plans.
	lives func(rollout.Plan) bool
	// noMarks: marks do not reach Temporal.
	noMarks bool
	// refusePush: somebody else pushed first.
	refusePush bool
	// unreadable: somebody broke routing.yaml.
	unreadable bool
	// skew is how far the bot's clock is ahead.
	skew time.Duration
	// specGone: the spec's file is not there.
	specGone bool
	started  map[string]time.Time
	broken   string // the build whose workers crash
	// after is called with every plan and what it was made on, before it is carried out.
	after func(rollout.Snapshot, rollout.Plan)
	// died is called with the plan that the bot died with.
	died func(site, rollout.Plan)
}

type decoded struct {
	data   string
	object any
}

// site is a place between two remote writes.
type site string

const (
	beforeLower  site = "before lowering"
	midLower     site = "in lowering" // after the first of its calls
	afterLower   site = "after lowering"
	midDelete    site = "in deleting" // after the first of several
	afterDelete  site = "after deleting"
	afterCommit  site = "after the commit"
	afterGates   site = "after gates"
	afterBatches site = "after batch jobs"
	midRaise     site = "in raising" // after the first of its calls
)

func sites() []site {
	return []site{beforeLower, midLower, afterLower, midDelete, afterDelete, afterCommit, afterGates, afterBatches, midRaise}
}

const podsStartFor = 20 * time.Second

// copy is another world that goes on from here.
func (w *world) copy(t require.TestingT) *world {
	c := newWorld(t)
	c.server, c.files, c.started = w.server.copy(), maps.Clone(w.files), maps.Clone(w.started)
	spec := *w.given.Spec
	spec.Spec.Rollout.Steps = slices.Clone(spec.Spec.Rollout.Steps)
	c.given.Spec = &spec
	return c
}

func newWorld(t require.TestingT) *world {
	w := &world{t: t, server: newServer(noon), given: steady(), files: map[string]string{}, decoded: map[string]decoded{}, judge: allowed, started: map[string]time.Time{}}
	w.given.Spec.Spec.Replicas = replicas(1)
	return w
}

func (w *world) push(tag string) { w.given.Spec.Spec.Template = template(tag) }

func (w *world) spec() *v1alpha1.WorkerDeploymentSpec { return &w.given.Spec.Spec }

const dir = "deploy/prod/payments/checkout"

// record reads what is in Git.
func (w *world) record() rollout.Record {
	if w.read == nil {
		rec := w.readFiles()
		w.read = &rec
	}
	return *w.read
}

func (w *world) readFiles() rollout.Record {
	rec := rollout.Record{Dir: dir, Files: map[string]rollout.File{}}
	for p, data := range w.files {
		rec.Files[strings.TrimPrefix(p, dir+"/")] = rollout.File{Hash: blob(data), Data: data}
	}
	for _, name := range []string{"routing.yaml", "status.yaml"} {
		data, ok := w.files[dir+"/"+name]
		if !ok {
			continue
		}
		switch o := w.decode(name, data).(type) {
		case *v1alpha1.Routing:
			rec.Routing = o
		case *v1alpha1.WorkerDeployment:
			rec.Status = o
		}
	}
	return rec
}

// decode reads a file, unless it is as it was.
func (w *world) decode(name, data string) any {
	if was := w.decoded[name]; was.data == data {
		return was.object
	}
	docs, problems := v1alpha1.Decode(name, []byte(data))
	require.Empty(w.t, problems)
	w.decoded[name] = decoded{data, docs[0].Object}
	return docs[0].Object
}

func (w *world) routing() v1alpha1.RoutingSpec {
	if r := w.record().Routing; r != nil {
		return r.Spec
	}
	return v1alpha1.RoutingSpec{}
}

func (w *world) status() *v1alpha1.WorkerDeploymentStatus {
	if st := w.record().Status; st != nil {
		return st.Status
	}
	return nil
}

// reason is that of the condition Ready, with a * if it is true.
func (w *world) reason() string {
	for _, c := range w.status().Conditions {
		if c.Type == v1alpha1.ConditionReady {
			if c.Status == v1alpha1.True {
				return c.Reason + "*"
			}
			return c.Reason
		}
	}
	return ""
}

// edit changes routing.yaml as a person does.
func (w *world) edit(change func(*v1alpha1.RoutingSpec)) {
	r := *w.record().Routing
	delete(w.decoded, "routing.yaml") // what change writes to is in there
	change(&r.Spec)
	data, err := render.YAML(r)
	require.NoError(w.t, err)
	w.files[dir+"/routing.yaml"], w.read = string(data), nil
}

func (w *world) look() rollout.Snapshot {
	s := w.given.Snapshot
	s.Now, s.Record, s.Observation = w.server.now.Add(w.skew), w.record(), rollout.Observation{}
	if w.unreadable {
		s.Record.LastReadable, s.Record.Routing = s.Record.Routing, nil
		s.Record.RoutingProblem = &rollout.Problem{Reason: rollout.PlanGenerationFailed, Message: "routing.yaml: line 1"}
	}
	if w.specGone { // a worker deployment that is retired has the spec of its status then
		s.Spec, s.SpecPath = nil, ""
		if rec := s.Record; rec.Routing != nil && rec.Routing.Spec.Retire != nil && rec.Status != nil {
			s.Spec = rec.Status
		}
	}
	if Look(s).Connection() == nil {
		return s // and Temporal is not asked
	}
	s.Observation = w.server.observe(Look(s).Ask())
	if s.Observation.Problem == nil {
		s.Observation = w.server.observe(Look(s).Ask())
	}
	s.Observation.At = s.Observation.At.Add(w.skew)
	return s
}

func (w *world) decide(s rollout.Snapshot) rollout.Plan {
	p := Look(s).Propose()
	plan := Look(s).Resolve(p, w.judge(p))
	require.Empty(w.t, Never(s, plan), "row %s", plan.Row)
	requireTabled(w.t, plan.Status)
	if w.after != nil {
		w.after(s, plan)
	}
	return plan
}

// cycle is one cycle of the bot, without any memory of the one before.
func (w *world) cycle() rollout.Plan {
	death := w.dies
	w.dies = ""
	s := w.look()
	plan := w.decide(s)
	if plan.SecondRead {
		first := s.Observation
		w.server.tick(time.Second)
		s = w.look()
		s.FirstRead = &first
		plan = w.decide(s)
	}
	dies := func(at ...site) bool {
		if !slices.Contains(at, death) || w.lives != nil && w.lives(plan) {
			return false
		}
		if w.died != nil {
			w.died(death, plan)
		}
		return true
	}
	if dies(beforeLower) {
		return plan
	}
	if plan.Lower != nil && w.server.call(*plan.Lower, !w.noMarks, death == midLower) != nil || dies(midLower, afterLower) {
		return plan
	}
	for _, id := range plan.Deletions {
		s.Deletions = append(s.Deletions, rollout.Deletion{BuildID: id, Refused: w.server.remove(id)})
		if dies(midDelete) {
			return plan
		}
	}
	if len(s.Deletions) > 0 {
		plan = w.decide(s)
	}
	if dies(midDelete, afterDelete) || !w.commit(plan, s.Record) || dies(afterCommit) {
		return plan
	}
	for _, g := range plan.Gates {
		if id := g.Gate.WorkflowID(g.TaskQueue); w.server.gates[id] == "" {
			w.server.gates[id] = rollout.GateRunning
		}
	}
	if dies(afterGates) {
		return plan
	}
	for _, b := range plan.Batches {
		w.server.start(b)
	}
	if dies(afterBatches) {
		return plan
	}
	if plan.Raise != nil {
		_ = w.server.call(*plan.Raise, !w.noMarks, death == midRaise) // one that is refused is decided again
	}
	dies(midRaise)
	return plan
}

// commit writes what the plan leads to; it reports whether the push was accepted.
func (w *world) commit(plan rollout.Plan, record rollout.Record) bool {
	changes, err := render.Files(plan, record)
	require.NoError(w.t, err)
	if len(changes) == 0 {
		return true
	}
	if w.refusePush {
		w.refusePush = false
		return false
	}
	w.read = nil
	for _, c := range changes {
		if c.Delete {
			delete(w.files, c.Path)
			continue
		}
		require.Empty(w.t, c.Blob)
		w.files[c.Path] = c.Data
	}
	w.commits = append(w.commits, named(plan.Summary[0]))
	return true
}

// pods does what the cluster does: workers come some time after their files, and go with them.
func (w *world) pods() {
	wanted := map[string]bool{}
	for _, v := range w.routing().Versions {
		if v.Replicas == nil || *v.Replicas > 0 {
			wanted[v.BuildID] = true
			if w.started[v.BuildID].IsZero() {
				w.started[v.BuildID] = w.server.now
			}
			if w.server.now.Sub(w.started[v.BuildID]) >= podsStartFor {
				w.server.poll(v.BuildID, v.BuildID != w.broken)
			}
		}
	}
	for id := range w.started {
		if !wanted[id] {
			delete(w.started, id)
			w.server.poll(id, false)
		}
	}
}

// run lets time pass, with a cycle every ten seconds, or less often if it is long.
func (w *world) run(d time.Duration) {
	for end := w.server.now.Add(d); w.server.now.Before(end); {
		w.cycle()
		step := max(10*time.Second, d/150)
		w.pods()
		w.server.tick(step)
		w.pods()
	}
}

// settle runs cycles while the world stands still, until nothing is written any more. It must not take long.
func (w *world) settle() {
	for range 5 {
		commits, calls := len(w.commits), len(w.server.calls)
		w.cycle()
		if len(w.commits) == commits && len(w.server.calls) == calls {
			return
		}
	}
	require.Fail(w.t, "it does not come to rest", "%v", w.commits[max(0, len(w.commits)-6):])
}

// quiet requires that nothing is written, whatever the time.
func (w *world) quiet(times int, every time.Duration) {
	commits, calls := slices.Clone(w.commits), slices.Clone(w.server.calls)
	for range times {
		w.cycle()
		w.server.tick(every)
	}
	require.Equal(w.t, commits, w.commits)
	require.Equal(w.t, calls, w.server.calls)
}

// startV1 runs until v1 is current and ready, and forgets how that came.
func (w *world) startV1() {
	w.push("v1")
	w.run(2 * time.Minute)
	require.Equal(w.t, []string{"v1 current"}, w.server.calls)
	require.Equal(w.t, "RolloutComplete*", w.reason())
	w.commits, w.server.calls = nil, nil
}

// blob is Git's name for a content.
func blob(data string) string {
	return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(data), data)))
}
