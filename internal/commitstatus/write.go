package commitstatus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Bounds of what is asked of a forge.
const (
	// burst requests are sent at once, then one each second: GitHub allows 80 changes in a minute.
	burst = 10
	// sayEvery is how often a status that stays what it is follows in words.
	sayEvery = 5 * time.Minute
	// longAgo is what a Writer that begins anew takes for said already: it does not ask the forge about every commit
	// that there ever was.
	longAgo = 72 * time.Hour
	// again is when a status is tried again that was refused: a token may get the right to set it.
	again = 10 * time.Minute
	// originGrace is how long the commit that asked may be looked for. Then it is taken for one that history does not
	// have, such as a shallow one.
	originGrace = 15 * time.Minute
	// callTime bounds one status.
	callTime = time.Minute
)

// Origins knows the commits that gave specs their content; see gitops.Repository.
type Origins interface {
	Origins(ctx context.Context, snapshots []rollout.Snapshot) ([]rollout.GitContext, error)
	// Changers prepares a search for recent commits that changed a file at one of the paths, the newest first. It is
	// nil where it cannot be made now. The search runs in another goroutine.
	Changers(paths map[string]bool) func(context.Context) ([]string, error)
}

// WriterConfig is what a Writer works with.
type WriterConfig struct {
	Origins Origins
	Forge   forge.Statuses
	// Link gives the page of a folder of an environment's output; "" where there is none.
	Link func(env v1alpha1.Environment, dir string) string
	Now  func() time.Time
	Log  *slog.Logger
}

// Writer says on commits what became of what they asked for. Decided and Cycle are for one goroutine.
type Writer struct {
	WriterConfig
	standings map[string]map[rollout.Name]standing
	// unknownSince has the worker deployments whose commit that asked is not known, and since when.
	unknownSince map[rollout.Name]time.Time
	// specs are the files of the specs that the search for earlier commits is about; nil after that was prepared.
	specs   map[string]bool
	limiter *rate.Limiter

	life context.Context
	end  context.CancelFunc
	// looking ends with Close: earlier commits are not asked about any more.
	looking  context.Context
	stopLook context.CancelFunc
	closing  chan struct{}
	done     chan struct{}
	wake     chan struct{}

	mu sync.Mutex
	// targets are those of the last cycle, by environment, and queue what of them is still to be said.
	targets map[string]map[key]wanted
	queue   map[key]wanted
	// known is what is at the forge, asked are the commits whose statuses were read there.
	known map[key]*written
	asked map[string]bool
	// search finds earlier commits that changed specs, and looks are those that the forge is asked about, once after a
	// start. A status of theirs that waits may have been superseded while no bot ran.
	search func(context.Context) ([]string, error)
	looks  []string
	// until is when the forge is asked again, refused when a status is tried again.
	until   time.Time
	refused map[key]time.Time
	told    string
}

// written is a status at the forge.
type written struct {
	forge.Status
	at time.Time
}

// NewWriter makes a Writer, and starts what writes. Close ends it.
func NewWriter(c WriterConfig) *Writer {
	w := &Writer{WriterConfig: c, standings: map[string]map[rollout.Name]standing{},
		unknownSince: map[rollout.Name]time.Time{},
		specs:        map[string]bool{}, limiter: rate.NewLimiter(rate.Every(time.Second), burst),
		closing: make(chan struct{}), done: make(chan struct{}), wake: make(chan struct{}, 1),
		targets: map[string]map[key]wanted{}, queue: map[key]wanted{},
		known: map[key]*written{}, asked: map[string]bool{}, refused: map[key]time.Time{}}
	w.life, w.end = context.WithCancel(context.Background())
	w.looking, w.stopLook = context.WithCancel(w.life)
	go w.run()
	return w
}

// Decided takes what was decided. It asks no forge; the repository it asks which commits gave specs their content,
// where that is not known.
func (w *Writer) Decided(ctx context.Context, decisions []*rollout.Decision) {
	var missing []rollout.Snapshot
	var of []*rollout.Decision
	for _, d := range decisions {
		w.noteSpec(d.Snapshot)
		switch env := d.Snapshot.Environment; {
		case env.CommitStatuses == v1alpha1.NoCommitStatuses:
		case d.Snapshot.SpecPath == "":
			w.stand(d, standing{})
		case d.Snapshot.Git.Commit != "":
			w.stand(d, standingOf(d, d.Snapshot.Git.Commit, w.standings[env.Name][d.Plan.Deployment]))
		default:
			missing, of = append(missing, d.Snapshot), append(of, d)
		}
	}
	if len(missing) == 0 {
		return
	}
	origins, err := w.Origins.Origins(ctx, missing)
	if err != nil {
		w.Log.DebugContext(ctx, "commits that asked are not all known: they get their status later", "error", err)
	}
	for i, d := range of {
		n := d.Plan.Deployment
		if i < len(origins) && origins[i].Commit != "" {
			delete(w.unknownSince, n)
			w.stand(d, standingOf(d, origins[i].Commit, w.standings[d.Snapshot.Environment.Name][n]))
			continue
		}
		if w.unknownSince[n].IsZero() {
			w.unknownSince[n] = w.Now()
		}
		if w.Now().Sub(w.unknownSince[n]) >= originGrace {
			w.stand(d, standing{})
		}
	}
}

// noteSpec keeps the files of a spec until the search for earlier commits is prepared.
func (w *Writer) noteSpec(s rollout.Snapshot) {
	if w.specs == nil || s.Environment.CommitStatuses == v1alpha1.NoCommitStatuses {
		return
	}
	for _, f := range s.SpecFiles() {
		w.specs[f.Path] = true
	}
}

// stand notes where a decision leaves a worker deployment.
func (w *Writer) stand(d *rollout.Decision, s standing) {
	env := d.Snapshot.Environment.Name
	if w.standings[env] == nil {
		w.standings[env] = map[rollout.Name]standing{}
	}
	w.standings[env][d.Plan.Deployment] = s
}

// Cycle ends a cycle by the world that it read: what is to be said of that is said in the background. Nothing is said
// yet of an environment with a worker deployment that was never decided about.
func (w *Writer) Cycle(world rollout.World) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ready := len(world.Environments) > 0
	for _, env := range world.Environments {
		if env.Unusable != nil || env.Unrecorded {
			continue
		}
		name, all := env.Environment.Name, w.standings[env.Environment.Name]
		if !complete(env, all) && env.Environment.CommitStatuses != v1alpha1.NoCommitStatuses {
			ready = false
			continue
		}
		targets := map[key]wanted{}
		if env.Environment.CommitStatuses != v1alpha1.NoCommitStatuses {
			targets = wantedOf(env.Environment, all, w.Link)
		}
		w.leave(w.targets[name], targets)
		w.targets[name] = targets
		for k, want := range targets {
			w.want(k, want)
		}
	}
	if ready && len(w.specs) > 0 {
		if w.search = w.Origins.Changers(w.specs); w.search != nil {
			w.specs = nil
		}
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// complete forgets worker deployments that are gone, and reports whether all others were decided about.
func complete(env rollout.EnvironmentWorld, all map[rollout.Name]standing) bool {
	there := make(map[rollout.Name]bool, len(env.Entries)+len(env.Deployments))
	for _, k := range env.Entries {
		there[k.Deployment] = true
	}
	for _, s := range env.Deployments {
		there[s.Deployment] = true
	}
	maps.DeleteFunc(all, func(n rollout.Name, _ standing) bool { return !there[n] })
	return len(all) == len(there)
}

// want puts a status into the queue if it says something new.
func (w *Writer) want(k key, want wanted) {
	now := w.Now()
	if w.known[k] == nil && want.longAgo(now) {
		w.known[k] = &written{want.Status, now}
	}
	if want.changes(w.known[k], now) {
		w.queue[k] = want
	} else {
		delete(w.queue, k)
	}
}

// leave ends statuses that nothing asks for any more: of one that waits, it says so.
func (w *Writer) leave(was, now map[key]wanted) {
	for k := range was {
		if _, still := now[k]; still {
			continue
		}
		delete(w.queue, k)
		if at := w.known[k]; at != nil && at.State == forge.StatusPending {
			w.queue[k] = superseded(k.context)
		} else {
			w.forget(k)
		}
	}
}

// forget lets go of what nothing is said about any more.
func (w *Writer) forget(k key) {
	delete(w.known, k)
	delete(w.refused, k)
	for other := range w.known {
		if other.commit == k.commit {
			return
		}
	}
	delete(w.asked, k.commit)
}

// Close says what is left to be said, until the context ends or the forge cannot be asked. It asks about no earlier
// commits. Nothing may be told afterwards.
func (w *Writer) Close(ctx context.Context) {
	w.stopLook()
	close(w.closing)
	select {
	case <-w.done:
	case <-ctx.Done():
	}
	w.end()
	<-w.done
}

// run says what is in the queue, then asks about earlier commits.
func (w *Writer) run() {
	defer close(w.done)
	for {
		do, wait := w.next()
		if do != nil {
			if w.limiter.Wait(w.life) != nil {
				return
			}
			do()
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-w.wake:
		case <-timer.C:
		case <-w.closing:
			timer.Stop()
			if do, _ := w.next(); do == nil {
				return
			}
		}
		timer.Stop()
	}
}

// idle is how long nothing is looked for where nothing waits.
const idle = time.Hour

// next gives the next thing to do, or nil and how long to wait. Statuses of incomplete rollouts are said first, and
// earlier commits come last.
func (w *Writer) next() (do func(), wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, wait := w.Now(), idle
	if w.life.Err() != nil {
		return nil, wait
	}
	if w.until.After(now) {
		return nil, w.until.Sub(now)
	}
	order := slices.SortedFunc(maps.Keys(w.queue), func(a, b key) int {
		if x, y := graver(w.queue[a].State), graver(w.queue[b].State); x != y {
			return y - x
		}
		return strings.Compare(a.commit+" "+a.context, b.commit+" "+b.context)
	})
	for _, k := range order {
		if at := w.refused[k]; at.After(now) {
			wait = min(wait, at.Sub(now))
			continue
		}
		want := w.queue[k]
		return func() { w.say(k, want) }, 0
	}
	switch {
	case w.looking.Err() != nil:
	case w.search != nil:
		return w.findEarlier, 0
	case len(w.looks) > 0:
		return w.lookAtEarlier, 0
	}
	return nil, wait
}

// say reads what a commit says, if that is not known, and sets a status if it says something else.
func (w *Writer) say(k key, want wanted) {
	ctx, cancel := context.WithTimeout(w.life, callTime)
	defer cancel()
	if !w.knows(k.commit) {
		all, err := w.Forge.Statuses(ctx, k.commit)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil {
			w.failed(k, err)
			return
		}
		w.read(k.commit, all)
		return // what is left to be said now is looked at again
	}
	err := w.Forge.SetStatus(ctx, k.commit, want.Status)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.failed(k, err)
		return
	}
	w.told = ""
	w.known[k] = &written{want.Status, w.Now()}
	if now, waits := w.queue[k]; waits && !now.changes(w.known[k], w.Now()) {
		delete(w.queue, k)
	}
	if !w.wants(k) {
		w.forget(k)
	}
	w.Log.Debug("commit status set", "commit", k.commit, "context", k.context, "state", string(want.State))
}

func (w *Writer) wants(k key) bool {
	for _, targets := range w.targets {
		if _, is := targets[k]; is {
			return true
		}
	}
	return false
}

func (w *Writer) knows(commit string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[commit]
}

// read takes what a commit says at the forge.
func (w *Writer) read(commit string, all []forge.Status) {
	w.asked[commit] = true
	for _, s := range all {
		at := key{commit, s.Context}
		if _, waits := w.queue[at]; waits || w.wants(at) {
			w.known[at] = &written{s, w.Now()}
		}
	}
	for waits, want := range w.queue {
		if waits.commit == commit && !want.changes(w.known[waits], w.Now()) {
			delete(w.queue, waits)
		}
	}
}

// findEarlier searches for the earlier commits that lookAtEarlier asks about.
func (w *Writer) findEarlier() {
	w.mu.Lock()
	search := w.search
	w.search = nil
	w.mu.Unlock()
	commits, err := search(w.looking)
	if err != nil && w.looking.Err() == nil {
		w.Log.Info("not all earlier commits are known: a superseded status may stay pending", "error", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks = commits
}

// lookAtEarlier asks about an earlier commit, and ends its statuses that wait although nothing asks for them.
func (w *Writer) lookAtEarlier() {
	w.mu.Lock()
	commit := w.looks[0]
	w.looks = w.looks[1:]
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(w.looking, callTime)
	defer cancel()
	all, err := w.Forge.Statuses(ctx, commit)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if w.looking.Err() == nil {
			w.until = until(err, w.Now(), 0)
			w.Log.Info("earlier commit not asked about: a superseded status may stay pending", "commit", commit,
				"error", err)
		}
		return
	}
	some := false
	for _, s := range all {
		if k := (key{commit, s.Context}); s.State == forge.StatusPending && w.sets(s.Context) && !w.wants(k) {
			w.queue[k], some = superseded(s.Context), true
		}
	}
	if some {
		w.read(commit, all)
	}
}

// sets reports whether a context is of an environment whose statuses are all known.
func (w *Writer) sets(context string) bool {
	for env, targets := range w.targets {
		if len(targets) > 0 && strings.HasPrefix(context+"/", Own+env+"/") {
			return true
		}
	}
	return false
}

// failed leaves a status for later.
func (w *Writer) failed(k key, err error) {
	if w.life.Err() != nil {
		return
	}
	var refused *forge.RefusedError
	if errors.As(err, &refused) {
		w.refused[k] = w.Now().Add(again)
	} else {
		w.until = until(err, w.Now(), rest)
	}
	if text := fmt.Sprint(err); text != w.told {
		w.told = text
		w.Log.Warn("commit status not set: it is tried again", "commit", k.commit, "context", k.context, "error", err)
	}
}
