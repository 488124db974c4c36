package gitops

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/signature"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Config says which branch is read and written, in which repository, and how. All of it is the bot's own, never the
// repository's.
type Config struct {
	// URL of the repository: file:///path, https://, ssh:// or user@host:path.
	URL string
	// Branch that specs are on.
	Branch string
	// CacheDir holds the mirror; it may be deleted at any time.
	CacheDir string
	Auth     git.Auth
	// Silence is how long the server may be silent; zero: git.DefaultSilence.
	Silence time.Duration
	// Author and Email of commits.
	Author, Email string
	// SigningKey signs commits to branches; nil: they are not signed. Those of the decision log never are: they come in
	// numbers.
	SigningKey *signature.Key
	// SkipCI marks commits, so that they start no CI.
	SkipCI bool
	// Signers whose signatures of commits are trusted; nil: whether a commit is signed is not looked at.
	Signers *signature.Signers
	// Options are how files are read.
	Options []index.Option
	Log     *slog.Logger
	// Now gives the time that commits carry.
	Now func() time.Time
	// OnWrite is called before and after each push; nil: no call is made.
	OnWrite func(moment Moment)
}

// Moment is before or after a write to the server.
type Moment string

// The moments around a write.
const (
	Before Moment = "before"
	After  Moment = "after"
)

// Repository is a branch on a server, and the branches that its environments write to. It is used by one goroutine at a
// time.
type Repository struct {
	cfg    Config
	mirror *git.Mirror
	// last is what could be used last, for both readings.
	last *index.LastUsable
	// searchAgain is when a search for that is made again, which was cut short; zero: none was.
	searchAgain time.Time
	// whole is what Read gives, survey what Survey does.
	whole, survey reading
	// lastTips are those that were read last.
	lastTips map[string]git.Tip
	// made are the branches of proposals that are known to hold what the bot put there.
	made    map[string]made
	history history
	// origins are commits that gave specs their content, by the spec's path and blob, as of the tip traced, whose place
	// is place.
	origins map[git.Wanted]rollout.GitContext
	traced  git.Hash
	place   int
	// later is what the mirror lacks still, and atOnce how much of it comes with one survey.
	later  later
	atOnce int
	// away says that the last read failed, and retry when origins that could not be found are looked for again.
	away  bool
	retry time.Time
	// holdersAgain is when history is looked through again for commits that hold something, after that failed.
	holdersAgain time.Time
	// nowhere is what was in no commit of a branch's history, by when it is looked for again.
	nowhere map[git.Wanted]time.Time
	// unknown are versions that no record had, by when they are looked for again.
	unknown map[lostKey]time.Time
	// readable is what history has of the records that cannot be read.
	readable map[recordKey]earlier
}

// reading is the world as it was read last, and the tips that it was read from.
type reading struct {
	reader *index.Reader
	last   *rollout.World
	from   fetched
	// unreadable are the records of the world that cannot be read.
	unreadable []unreadableRecord
	// anew says that the next one is made although nothing moved.
	anew bool
	// buildAgain is when folders are built again that took too much; zero: there are none.
	buildAgain time.Time
}

// buildPause is after how long a folder that took too much is built again although its files are the same. The machine
// may have been busy.
const buildPause = 5 * time.Minute

// buildsAgain reports whether it is time to build folders again that took too much.
func (r *reading) buildsAgain(now func() time.Time) bool {
	if r.buildAgain.IsZero() || now().Before(r.buildAgain) {
		return false
	}
	r.buildAgain = time.Time{}
	r.reader.BuildAgain()
	return true
}

// Open opens the repository's mirror; it does not talk to the server.
func Open(cfg Config) (*Repository, error) {
	sum := sha256.Sum256([]byte(cfg.URL))
	m, err := git.Open(git.Config{URL: cfg.URL, Dir: filepath.Join(cfg.CacheDir, "mirror", hex.EncodeToString(sum[:8])),
		Auth: cfg.Auth, Silence: cfg.Silence, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	last := &index.LastUsable{}
	return &Repository{cfg: cfg, mirror: m, atOnce: laterAtOnce, made: map[string]made{}, last: last,
		whole:  reading{reader: index.NewReader(cfg.Options...).With(last)},
		survey: reading{reader: index.NewReader(cfg.Options...).With(last).AsIndex()}}, nil
}

// MayPush says why the server does not take pushes by the bot's credentials, nil if it does. It sends nothing. That a
// branch is protected shows only when something is pushed. Errors: *git.AccessError, the context's.
func (r *Repository) MayPush(ctx context.Context) error { return r.mirror.MayPush(ctx, r.cfg.Branch) }

// Close gives the mirror back.
func (r *Repository) Close() error { return r.mirror.Close() }

// Read gives the world at the branch's tip. When nothing moved it is the one that was read before: it is not to be
// changed. Errors: those of git.Mirror.Fetch.
func (r *Repository) Read(ctx context.Context) (rollout.World, error) {
	return r.readAs(ctx, &r.whole)
}

// Survey is Read for callers that look at few worker deployments: what was decoded before is not decoded again, and
// not kept either. A snapshot of what was decoded before is Partial. load completes snapshots of this survey, in
// their order, by what their files say, but for manifests of versions: of those it reads the LoadFiles of
// snapshots that are complete. With an error it leaves out what could not be completed. It may be called at any
// time, also while another goroutine reads. It needs no server but for what a partial mirror has not got yet: once
// Complete had its time, manifests alone. Its errors are those of the mirror's reads.
func (r *Repository) Survey(ctx context.Context) (
	survey rollout.Survey, load func(context.Context, []rollout.Snapshot) ([]rollout.Snapshot, error), err error) {
	world, err := r.readAs(ctx, &r.survey)
	now := r.survey.reader.Surveyed()
	return rollout.Survey{World: world, Snapshots: now.Snapshots}, now.Load, err
}

func (r *Repository) readAs(ctx context.Context, as *reading) (rollout.World, error) {
	r.away = true
	world, err := r.read(ctx, as)
	r.away = err != nil
	if err == nil {
		world = r.withLastReadable(ctx, world, as.unreadable)
	}
	return world, err
}

// manyFull is how many worker deployments a survey may keep in full, of those that need not be, for the next reading.
const manyFull = 100

func (r *Repository) read(ctx context.Context, as *reading) (rollout.World, error) {
	tip, err := r.fetch(ctx, r.cfg.Branch)
	if err != nil {
		return rollout.World{}, err
	}
	from := fetched{map[string]git.Tip{r.cfg.Branch: tip}, map[string]failedFetch{}}
	buildsAgain := as.buildsAgain(r.cfg.Now)
	if as.last != nil {
		for _, env := range as.last.Environments {
			if err := r.fetchOutput(ctx, env.Environment, from, as.from); err != nil {
				return rollout.World{}, err
			}
		}
		if from.same(as.from) && !as.anew && !r.searchesAgain() && !buildsAgain {
			r.lastTips = as.from.tips
			return *as.last, nil
		}
	}
	git, err := r.gitContext(tip)
	if err != nil {
		return rollout.World{}, err
	}
	r.last.Earlier = func(visit func(tree.Tree) bool) bool { return r.earlier(ctx, tip, visit) }
	world, err := as.reader.Read(tree.Commit{Ctx: ctx, Mirror: r.mirror, Hash: tip.Tree},
		func(env v1alpha1.Environment) (tree.Tree, string, error) {
			if err := r.fetchOutput(ctx, env, from, as.from); err != nil {
				return nil, "", err
			}
			if failed, ok := from.failed[r.outputBranch(env)]; ok && failed.last.Commit.IsZero() {
				return nil, "", failed.err
			} else if ok {
				return tree.Commit{Ctx: ctx, Mirror: r.mirror, Hash: failed.last.Tree}, "", failed.err
			}
			out := from.tips[r.outputBranch(env)]
			if out.Commit.IsZero() {
				return tree.Commit{Ctx: ctx, Mirror: r.mirror, Hash: out.Tree}, "", nil
			}
			return tree.Commit{Ctx: ctx, Mirror: r.mirror, Hash: out.Tree}, out.Commit.String(), nil
		}, git)
	if err != nil {
		return rollout.World{}, r.mirror.Needed(err)
	}
	as.last, as.from, as.unreadable, r.lastTips = &world, from, r.unreadableRecords(world), from.tips
	if as.buildAgain.IsZero() && as.reader.Unbuilt() {
		as.buildAgain = r.cfg.Now().Add(buildPause)
	}
	as.anew = as.reader.Full() > manyFull
	return world, nil
}

// fetched are branches by name: their tips, or why one cannot be fetched though the server can be reached.
type fetched struct {
	tips   map[string]git.Tip
	failed map[string]failedFetch
}

// failedFetch is why a branch cannot be fetched, and its tip as it was fetched last.
type failedFetch struct {
	err  *tree.Error
	last git.Tip
}

func (f fetched) same(o fetched) bool {
	return maps.EqualFunc(f.tips, o.tips, func(a, b git.Tip) bool { return a.Commit == b.Commit }) &&
		maps.EqualFunc(f.failed, o.failed, func(a, b failedFetch) bool { return a.last.Commit == b.last.Commit })
}

// fetchOutput adds the tip of an environment's output branch; a branch that does not exist yet has a zero tip. It gives
// no error where only that branch cannot be fetched.
func (r *Repository) fetchOutput(ctx context.Context, env v1alpha1.Environment, to, before fetched) error {
	branch := r.outputBranch(env)
	_, known := to.tips[branch]
	if _, failed := to.failed[branch]; known || failed {
		return nil
	}
	tip, err := r.fetch(ctx, branch)
	if _, ok := errors.AsType[*git.NoBranchError](err); ok {
		tip, err = git.Tip{Branch: branch}, nil
	}
	if err != nil && (ctx.Err() != nil || !ofBranch(err)) {
		return err
	}
	if err != nil {
		last, ok := before.tips[branch]
		if !ok {
			last = before.failed[branch].last
		}
		to.failed[branch] = failedFetch{tree.Unfetched(branch, err), last}
		return nil
	}
	to.tips[branch] = tip
	return nil
}

// ofBranch reports whether an error of a fetch is about the branch, and not about the server as a whole.
func ofBranch(err error) bool {
	access, ok := errors.AsType[*git.AccessError](err)
	return !ok || access.Reason == git.ReasonServer
}

// fetch asks for a branch's tip, and says if it is not on top of what the branch was.
func (r *Repository) fetch(ctx context.Context, branch string) (git.Tip, error) {
	tip, err := r.mirror.Fetch(ctx, branch)
	if access, ok := errors.AsType[*git.AccessError](err); ok && access.Refused() {
		return tip, &meant{err, rollout.ErrRefused}
	}
	if err == nil && tip.Rewritten {
		r.cfg.Log.WarnContext(ctx, "the branch was rewritten: everything is read anew", "branch", branch, "commit",
			tip.Commit.String(), "before", tip.Previous.String())
	}
	return tip, err
}

func (r *Repository) outputBranch(env v1alpha1.Environment) string {
	if env.Output.Branch != "" {
		return env.Output.Branch
	}
	return r.cfg.Branch
}

func (r *Repository) gitContext(tip git.Tip) (rollout.GitContext, error) {
	c, err := r.mirror.Commit(tip.Commit)
	if err != nil {
		return rollout.GitContext{}, err
	}
	return rollout.GitContext{Branch: r.cfg.Branch, Commit: tip.Commit.String(), Author: authorOf(c),
		When: c.Author.When.UTC(), Committer: signatureText(c.Committer), Message: c.Message}, nil
}

func authorOf(c git.CommitInfo) string { return signatureText(c.Author) }

func signatureText(s git.Signature) string { return s.Name + " <" + s.Email + ">" }

// Confirm reports whether the specs' branch still has the blobs that a decision was made on. It is asked after a push
// to a separate output branch: if they moved, the decision is discarded.
func (r *Repository) Confirm(ctx context.Context, specs map[string]string) (bool, error) {
	tip, err := r.mirror.Fetch(ctx, r.cfg.Branch)
	if err != nil {
		return false, err
	}
	for _, file := range slices.Sorted(maps.Keys(specs)) {
		e, ok, err := r.mirror.Lookup(tip.Tree, file)
		if err != nil {
			return false, err
		}
		if !ok || e.Hash.String() != specs[file] {
			return false, nil
		}
	}
	return true, nil
}
