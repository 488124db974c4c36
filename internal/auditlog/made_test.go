package auditlog_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/mask"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/sim"
	"github.com/rampart-gitops/rampart/policy"
)

// made makes the decisions of one worker deployment as they come in life. Its rollouts are played by the simulator,
// which has the real planner, in the cycles that do or find something new. What the simulator knows too exactly (times,
// counts, rates, hashes) is drawn at random. The verdicts are those of the real engine with the default library.
type made struct {
	rng    *rand.Rand
	engine *policy.Engine
	masker *mask.Masker
	labels map[string]string
	name   rollout.Name
	start  time.Time
	days   int
	// want is how many decisions there are to be from the time counted on, as far as there are enough cycles. 0: as
	// they come.
	want    int
	counted time.Time
	// pushes by time, each with the commit that it came with.
	pushes []pushed
	// frozen is when a person's freeze holds raises.
	frozen [][2]time.Time
	seen   map[time.Time]seen
	queues []string
	// late is how much later than in the simulation the cycle is.
	late time.Duration
}

type pushed struct {
	at  time.Time
	git rollout.GitContext
}

type seen struct {
	s rollout.Snapshot
	p rollout.Proposal
}

const madeSpec = `apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata:
  name: %[1]s
  namespace: %[2]s
  labels: {tier: %[3]s, team: %[4]s, cost-center: "%[5]d"}
  annotations: {docs: "https://wiki.example.com/%[1]s", oncall: "#%[4]s-oncall"}
spec:
  replicas: %[6]d
  workerOptions:
    connectionRef: {name: temporal}
    temporalNamespace: %[2]s
  rollout: %[7]s
  sunset: {scaledownDelay: %[8]s, deleteDelay: %[9]s}
  template:
    metadata:
      labels: {app: %[1]s, team: %[4]s}
      annotations: {prometheus.io/scrape: "true", prometheus.io/port: "9090"}
    spec:
      serviceAccountName: %[1]s
      terminationGracePeriodSeconds: 60
      containers:
        - name: worker
          image: registry.example.com/%[4]s/%[1]s:%[10]s
          args: ["--queue", "%[1]s", "--max-activities", "%[11]d"]
          env:
            - {name: LOG_LEVEL, value: info}
            - {name: REGION, value: eu-central-1}
            - {name: DB_URL, value: "postgres://%[1]s@db.%[2]s/app"}
            - {name: OTEL_SERVICE_NAME, value: %[1]s}
            - name: DB_PASSWORD
              valueFrom: {secretKeyRef: {name: %[1]s-db, key: password}}
            - name: POD_NAME
              valueFrom: {fieldRef: {fieldPath: metadata.name}}
          resources:
            requests: {cpu: %[12]dm, memory: 512Mi}
            limits: {memory: 1Gi}
          ports: [{name: metrics, containerPort: 9090}]
          readinessProbe:
            httpGet: {path: /healthz, port: 8080}
            periodSeconds: 10
          volumeMounts: [{name: config, mountPath: /etc/app, readOnly: true}]
        - name: proxy
          image: registry.example.com/platform/proxy:1.9.4
          resources: {requests: {cpu: 50m, memory: 64Mi}}
      volumes: [{name: config, configMap: {name: %[1]s-config}}]
`

var (
	madeTeams      = []string{"payments", "search", "logistics", "identity", "billing", "catalog", "pricing", "messaging", "ledger", "onboarding"}
	madeWords      = []string{"checkout", "refunds", "index", "ranking", "labels", "routes", "signup", "sessions", "invoices", "dunning", "import", "export", "quotes", "mailer", "digest", "webhooks", "settlement", "reports", "kyc", "fraud"}
	madePeople     = []string{"Ada Lovelace", "Grace Hopper", "Edsger Dijkstra", "Barbara Liskov", "Tony Hoare", "Radia Perlman", "Ken Thompson", "Margaret Hamilton", "Leslie Lamport", "Frances Allen", "Donald Knuth", "Lynn Conway"}
	madeChanges    = []string{"fix the retry of", "handle empty pages in", "log less in", "upgrade the SDK of", "validate input of", "speed up", "add a metric to", "remove dead code from", "cap the batches of", "tidy"}
	madeStrategies = []string{
		`{strategy: Progressive, gate: {workflowType: Smoke, onFailure: Rollback}, steps: [{rampPercentage: 5, pauseDuration: 10m}, {rampPercentage: 25, pauseDuration: 15m}, {rampPercentage: 50, pauseDuration: 20m}], analysis: {window: 10m, minSamples: 50, bake: 1h%s}}`,
		`{strategy: Progressive, gate: {workflowType: Smoke}, steps: [{rampPercentage: 1, pauseDuration: 5m}, {rampPercentage: 10, pauseDuration: 10m}, {rampPercentage: 50, pauseDuration: 30m}], analysis: {minSamples: 100, maxFailureRate: 0.2, bake: 30m%s}}`,
		`{strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 10m}, {rampPercentage: 30, pauseDuration: 10m}, {rampPercentage: 60, pauseDuration: 10m}, {rampPercentage: 80, pauseDuration: 10m}], analysis: {bake: 2h%s}}`,
	}
)

const madeMetrics = `, metrics: [{name: error_rate, maxAge: 2m, prometheus: {query: 'sum(rate(errors_total{build="{{ .BuildID }}"}[5m]))'}}, {name: latency_p99, prometheus: {query: 'histogram_quantile(0.99, sum(rate(latency_bucket{build="{{ .BuildID }}"}[5m])) by (le))'}}]`

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func randomHex(r *rand.Rand, digits int) string {
	b := make([]byte, (digits+1)/2)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return hex.EncodeToString(b)[:digits]
}

// make gives the decisions in the order of their time.
func (m *made) make(t require.TestingT) []auditlog.Decision {
	in := m.world(t)
	m.seen = map[time.Time]seen{}
	table, err := sim.Run(context.Background(), in)
	require.NoError(t, err)
	var out []auditlog.Decision
	at := m.times(table.Entries)
	for i, t1 := range at {
		if i == 0 || at[i-1].Add(2*time.Second).Before(t1) {
			m.late = time.Duration(m.rng.Int64N(int64(8 * time.Second)))
		}
		out = append(out, m.decision(t, m.seen[t1]))
	}
	return out
}

// times of the decisions, sorted. They are the cycles that the simulation tells of, both reads of those that have two,
// and some cycles between them while a version is judged: two at most, or as many as are wanted.
func (m *made) times(entries []rollout.TimetableEntry) []time.Time {
	all := slices.SortedFunc(maps.Keys(m.seen), time.Time.Compare)
	var out, spare []time.Time
	k := 0
	for i, e := range entries {
		end := e.At.Add(time.Hour)
		if i+1 < len(entries) {
			end = entries[i+1].At
		}
		var between []time.Time
		for k > 0 && !all[k-1].Before(e.At) {
			k--
		}
		for ; k < len(all) && all[k].Before(end.Add(2*time.Second)); k++ {
			switch at, got := all[k], m.seen[all[k]]; {
			case at.Before(e.At):
			case at.Equal(e.At), at.Equal(e.At.Add(time.Second)) && got.s.FirstRead != nil:
				out = append(out, at)
			case at.After(e.At.Add(30*time.Second)) && at.Before(end.Add(-30*time.Second)) && got.p.Canary != nil && got.s.FirstRead == nil:
				between = append(between, at)
			}
		}
		m.rng.Shuffle(len(between), func(i, j int) { between[i], between[j] = between[j], between[i] })
		n := 0
		if m.want == 0 {
			n = min(2, len(between))
			out = append(out, between[:n]...)
		}
		spare = append(spare, between[n:]...)
	}
	if m.want > 0 {
		out = m.more(out, spare)
	}
	slices.SortFunc(out, time.Time.Compare)
	return slices.Compact(out)
}

// more adds as many of the spare ones, drawn at random, as are wanted and there.
func (m *made) more(out, spare []time.Time) []time.Time {
	early := func(at time.Time) bool { return at.Before(m.counted) }
	slices.SortFunc(out, time.Time.Compare)
	out = slices.Compact(out)
	n := len(slices.DeleteFunc(slices.Clone(out), early))
	spare = slices.DeleteFunc(spare, early)
	m.rng.Shuffle(len(spare), func(i, j int) { spare[i], spare[j] = spare[j], spare[i] })
	return append(out, spare[:min(max(m.want-n, 0), len(spare))]...)
}

func (m *made) world(t require.TestingT) sim.Input {
	r := m.rng
	team := m.name.Namespace
	metrics := ""
	if r.IntN(4) == 0 {
		metrics = madeMetrics
	}
	strategy := fmt.Sprintf(pick(r, madeStrategies), metrics)
	tag := func(n int) string { return fmt.Sprintf("1.%d.%d-%s", n/7, n%7, randomHex(r, 8)) }
	text := fmt.Sprintf(madeSpec, m.name.Name, m.name.Namespace, pick(r, []string{"gold", "silver", "bronze"}), team, 1000+r.IntN(9000), 2+r.IntN(6),
		strategy, pick(r, []string{"1h", "2h", "30m"}), pick(r, []string{"24h", "12h", "48h"}), tag(0), 10*(1+r.IntN(20)), 100*(1+r.IntN(10)))
	text += "---\napiVersion: temporal.io/v1alpha1\nkind: Connection\nmetadata: {name: temporal, namespace: " + m.name.Namespace + "}\nspec: {hostPort: \"temporal:7233\"}\n"
	docs, problems := v1alpha1.Decode("workers/"+team+"/"+m.name.Name+".yaml", []byte(text))
	require.Empty(t, problems)
	world := v1alpha1.DefaultSimulation()
	world.At = v1alpha1.NewTime(m.start.Add(time.Duration(r.IntN(86400)) * time.Second))
	world.For = v1alpha1.Duration{Duration: time.Duration(m.days) * 24 * time.Hour}
	world.PollersAfter = v1alpha1.Duration{Duration: time.Duration(15+r.IntN(60)) * time.Second}
	world.Traffic.WorkflowsPerMinute = math.Exp(1 + 6*r.Float64())
	world.Traffic.Duration = v1alpha1.Duration{Duration: time.Duration(5+r.IntN(300)) * time.Second}
	m.queues = []string{m.name.Name, m.name.Name + "-slow"}[:1+r.IntN(2)]
	m.rollouts(&world, "registry.example.com/"+team+"/"+m.name.Name, tag)
	return sim.Input{World: world, Judge: m, Next: sim.NextMadeUp, Snapshot: rollout.Snapshot{
		Deployment: m.name, SpecPath: "workers/" + team + "/" + m.name.Name + ".yaml",
		Environment: v1alpha1.Environment{Name: "prod", CD: v1alpha1.CD{Tool: v1alpha1.ArgoCD}, Output: v1alpha1.Output{Path: "deploy/prod"}, ManagerIdentity: "rampart/prod",
			Approval: v1alpha1.Approval{Mode: v1alpha1.Direct, Scope: v1alpha1.ScopeStep}, Status: v1alpha1.StatusOn},
		Spec: docs[0].Object.(*v1alpha1.WorkerDeployment), Connection: docs[1].Object.(*v1alpha1.Connection),
		Record: rollout.Record{Dir: "deploy/prod/" + m.name.String()}, Limits: rollout.DefaultLimits(),
	}}
}

// rollouts are some 250 a year: some fail, some meet a freeze.
func (m *made) rollouts(world *v1alpha1.SimulationSpec, image string, tag func(int) string) {
	r := m.rng
	at := time.Duration(0)
	m.push(world.At.Time, 0)
	for n := 1; ; n++ {
		at += 6*time.Hour + time.Duration(r.ExpFloat64()*29*float64(time.Hour))
		at = at.Truncate(time.Second)
		if at >= world.For.Duration {
			return
		}
		world.Pushes = append(world.Pushes, v1alpha1.SimulatedPush{After: v1alpha1.Duration{Duration: at}, Image: image + ":" + tag(n)})
		m.push(world.At.Add(at), n)
		switch r.IntN(12) {
		case 0: // it fails, and is turned back
			world.Failures = append(world.Failures, v1alpha1.SimulatedFailures{Percentage: 20 + 60*r.Float64(), From: v1alpha1.Duration{Duration: at},
				To: v1alpha1.Duration{Duration: at + 4*time.Hour}})
		case 1:
			from := world.At.Add(at + time.Duration(r.IntN(40))*time.Minute)
			m.frozen = append(m.frozen, [2]time.Time{from, from.Add(time.Duration(1+r.IntN(6)) * time.Hour)})
		}
	}
}

func (m *made) push(at time.Time, n int) {
	r := m.rng
	m.pushes = append(m.pushes, pushed{at, rollout.GitContext{Branch: "main", Commit: randomHex(r, 40), Author: pick(r, madePeople),
		When:     at.Add(-time.Duration(20+r.IntN(40)) * time.Second),
		Message:  fmt.Sprintf("%s: %s %s (#%d)", m.name.Name, pick(r, madeChanges), pick(r, madeWords), 1000+m.rng.IntN(40000)),
		SpecBlob: randomHex(r, 40)}})
}

// Judge is quick: most of what it is asked, the simulator asks to look ahead.
func (m *made) Judge(_ context.Context, s rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
	m.seen[s.Now] = seen{s, p}
	out := rollout.Verdicts{PolicyDigest: "made", Spec: rollout.Verdict{Effect: rollout.Allow}, Actions: map[string]rollout.Verdict{}}
	frozen := slices.ContainsFunc(m.frozen, func(f [2]time.Time) bool { return !s.Now.Before(f[0]) && s.Now.Before(f[1]) })
	for _, a := range p.Actions {
		v := rollout.Verdict{Effect: rollout.Allow}
		switch {
		case a.Kind == rollout.Continue && p.Canary != nil && p.Canary.Candidate == a.BuildID && (p.Canary.Worse || p.Canary.AboveCeiling):
			v.Effect = rollout.RollbackEffect
		case a.Raises() && frozen:
			v.Effect = rollout.HoldEffect
			v.Findings = []rollout.Finding{{Package: "rampart.rollout", Rule: "rollout.freeze", Effect: rollout.HoldEffect, Message: "frozen"}}
		case a.Kind == rollout.DriftAction:
			v.Drift = rollout.DriftRevert
		}
		out.Actions[a.ID] = v
	}
	return out
}

// decision judges what was seen, with the noise of life.
func (m *made) decision(t require.TestingT, x seen) auditlog.Decision {
	s, p := m.noise(x.s, x.p)
	v := m.engine.Judge(context.Background(), s, p)
	m.freeze(s, p, &v)
	document, err := policy.NewDocument(s, p)
	require.NoError(t, err)
	input, err := document.MarshalJSON()
	require.NoError(t, err)
	d, err := auditlog.NewDecision(auditlog.Judged{Now: s.Now, Labels: m.labels, Input: input, Verdicts: v}, m.masker)
	require.NoError(t, err)
	return d
}

func (m *made) freeze(s rollout.Snapshot, p rollout.Proposal, v *rollout.Verdicts) {
	for _, f := range m.frozen {
		if s.Now.Before(f[0]) || !s.Now.Before(f[1]) {
			continue
		}
		for _, a := range p.Actions {
			if a.Raises() {
				v.Actions[a.ID] = rollout.Verdict{Effect: rollout.HoldEffect, Findings: append(slices.Clone(v.Actions[a.ID].Findings),
					rollout.Finding{Package: "rampart.rollout", Rule: "rollout.freeze", Effect: rollout.HoldEffect, Until: f[1],
						Message: fmt.Sprintf("frozen by %s until %s", "incident", f[1].Format(time.RFC3339))})}
			}
		}
	}
}

// noise makes what was seen as inexact as life is.
func (m *made) noise(s rollout.Snapshot, p rollout.Proposal) (rollout.Snapshot, rollout.Proposal) {
	r := m.rng
	s.Now = s.Now.Add(m.late).Truncate(time.Second)
	for _, c := range m.pushes {
		if !c.at.After(s.Now) {
			s.Git = c.git
		}
	}
	s.Observation = m.observed(s.Observation, s.Now)
	if s.FirstRead != nil {
		first := m.observed(*s.FirstRead, s.Now.Add(-time.Second))
		s.FirstRead = &first
	}
	facts := map[string]rollout.Fact{}
	for name, f := range s.Facts {
		f.Value = json.RawMessage(fmt.Sprintf("%.17g", r.Float64()*100))
		f.ObservedAt = s.Now.Add(-time.Duration(r.Int64N(int64(30 * time.Second))))
		facts[name] = f
	}
	s.Facts = facts
	if p.Canary != nil {
		c := *p.Canary
		c.Evidence *= 0.8 + 0.4*r.Float64()
		c.CeilingEvidence *= 0.8 + 0.4*r.Float64()
		c.CandidateCounts, c.AgainstCounts = counted(s, c.Candidate, c.CandidateCounts), counted(s, c.Against, c.AgainstCounts)
		p.Canary = &c
	}
	return s, p
}

// counted are the counts of a version that the judgment was made from.
func counted(s rollout.Snapshot, buildID string, was rollout.ArmCounts) rollout.ArmCounts {
	v := s.Observation.Version(buildID)
	if v == nil || !v.Closed.Known || was.Closed == 0 {
		return was
	}
	failed := v.Closed.Failed + v.Closed.TimedOut
	return rollout.ArmCounts{Closed: v.Closed.Completed + failed, Failed: failed}
}

func (m *made) observed(o rollout.Observation, now time.Time) rollout.Observation {
	r := m.rng
	o.At = now.Add(-time.Duration(r.Int64N(int64(3 * time.Second))))
	o.Versions = slices.Clone(o.Versions)
	wobble := func(n int64) int64 { // as Poisson counts vary
		return max(0, n+int64(math.Round(r.NormFloat64()*math.Sqrt(float64(n)))))
	}
	for i := range o.Versions {
		v := &o.Versions[i]
		if !v.DrainageCheckedAt.IsZero() && v.Drainage == rollout.Draining {
			v.DrainageCheckedAt = now.Add(-time.Duration(r.Int64N(int64(3 * time.Minute))))
		}
		v.Closed.Completed = wobble(v.Closed.Completed)
		v.Closed.Failed = wobble(v.Closed.Failed + v.Closed.Completed/100)
		v.OpenPinned.N = wobble(v.OpenPinned.N)
		if len(v.Queues) > 0 {
			v.Queues = m.polled(v.Queues, now, o.Routing.Share(v.BuildID))
		}
	}
	for i := range o.Gates {
		g := &o.Gates[i]
		if g.RunID != "" {
			x := randomHex(r, 32)
			g.RunID = strings.Join([]string{x[:8], x[8:12], x[12:16], x[16:20], x[20:]}, "-")
		}
	}
	return o
}

func (m *made) polled(in []rollout.TaskQueue, now time.Time, share float32) []rollout.TaskQueue {
	r := m.rng
	var out []rollout.TaskQueue
	for _, name := range m.queues {
		for _, q := range in {
			q.Name = name
			if q.Pollers.Count > 0 {
				q.Pollers.LastAccess = now.Add(-time.Duration(r.Int64N(int64(time.Minute))))
			}
			if share > 0 {
				rate := float64(share) * 0.2 * (0.9 + 0.2*r.Float64())
				q.Backlog = rollout.Backlog{Known: true, AddRate: rate, DispatchRate: rate * (0.97 + 0.06*r.Float64())}
				if r.IntN(6) == 0 { // mostly nothing waits
					q.Backlog.Count, q.Backlog.Age = int64(1+r.IntN(30)), time.Duration(r.ExpFloat64()*float64(3*time.Second))
				}
			}
			out = append(out, q)
		}
	}
	return out
}

// company is many deployments over some days.
type company struct {
	deployments, days int
	start             time.Time
	// due is how many decisions each is to have made by the end of what is counted, with those that it had made before.
	// 0: as they come.
	due     int
	had     map[string]int
	counted time.Time
}

func (c company) each(t require.TestingT, i int, engine *policy.Engine) []auditlog.Decision {
	r := rand.New(rand.NewPCG(7, uint64(i)))
	team := madeTeams[i%len(madeTeams)]
	name := fmt.Sprintf("%s-%s", madeWords[i/len(madeTeams)%len(madeWords)], pick(r, madeWords))
	if i >= len(madeTeams)*len(madeWords) {
		name = fmt.Sprintf("%s-%d", name, i/(len(madeTeams)*len(madeWords)))
	}
	if at := c.counted; !at.IsZero() { // the same worker deployment at another time
		r = rand.New(rand.NewPCG(uint64(at.Unix()), uint64(i)))
	}
	m := &made{rng: r, engine: engine, masker: masker(t), labels: map[string]string{"id": "rampart-0", "version": "1.4.0"},
		name: rollout.Name{Namespace: team, Name: name}, start: c.start, days: c.days, counted: c.counted}
	if c.due > 0 {
		m.want = max(c.due-c.had[m.name.String()], 1)
	}
	return m.make(t)
}
