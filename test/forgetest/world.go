package forgetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// User is an account.
type User struct {
	ID    int64
	Login string
	Token string // which may do all that the user may
	Write bool   // to the repository; all can read it
	Admin bool   // of the repository
	Guest bool   // sees nothing of a private repository
}

// Address is the account's e-mail address, which everybody may see.
func (u *User) Address() string { return u.Login + "@example.com" }

// Token is a credential of a user.
type Token struct {
	User *User
	Read bool // and nothing else
	// Scopes that GitHub tells of a classic token.
	Scopes []string
}

// Status is a commit status.
type Status struct{ Commit, Context, State, Description, URL string }

// Review is the word of a reviewer.
type Review struct {
	By     *User
	State  string // APPROVED, CHANGES_REQUESTED, COMMENTED, DISMISSED
	Commit string
	At     time.Time
}

// Comment is one on a pull request.
type Comment struct {
	By   *User
	Body string
}

// Auto is an order to merge when all is well.
type Auto struct {
	By     *User
	Method string
	All    bool // it waits for all statuses, and not only for those that have to be there
}

// The states of a Pull.
const (
	Open   = "open"
	Closed = "closed"
	Merged = "merged"
)

// Pull is a pull request.
type Pull struct {
	Number      int
	Title, Body string
	Head, Base  string
	Draft       bool
	State       string
	Labels      []string
	HeadCommit  string
	// MergeCommit is what the base branch got; SquashCommit is what its own commits became before that.
	MergeCommit, SquashCommit string
	Author, ClosedBy          *User
	Created, Updated, Ended   time.Time
	Reviews                   []Review
	Reviewers                 []*User
	Teams                     []string
	Comments                  []Comment
	Auto                      *Auto
	Squash                    bool // GitLab keeps it
	Fork                      bool // its head is a branch of another repository
	looked                    bool // whether it has conflicts
}

// Rules are what a repository asks for.
type Rules struct {
	Checks    []string // contexts that have to be a success
	Approvals int
	Mergers   []string // logins; empty: all who may write
	NoAuto    bool     // no automatic merge
	Methods   []string // merge, squash, rebase
	Private   bool
	MaxPage   int                 // what it gives of a list at most
	Reviewers int                 // how many a pull request can have; zero: any number
	Protected map[string][]string // who may push to a protected branch
	Ruled     map[string][]string // who bypasses a branch's ruleset, which wants pull requests: GitHub has these
	Hooks     []Hook
	Racy      bool // two pull requests of one branch can be opened, as at the same moment
}

// Hook is a webhook. Code is what the last delivery was answered with; zero: there was none.
type Hook struct {
	URL    string
	Off    bool
	Events []string // as GitHub calls them
	Code   int
}

// World is a repository on a forge, and who uses it.
type World struct {
	Cast

	mu      sync.Mutex
	tb      testing.TB
	rules   Rules
	users   []*User
	tokens  map[string]Token
	teams   []string
	labels  []string
	pulls   []*Pull
	status  []Status
	renamed string // the name that it had before
	now     time.Time
	ids     int64
}

// NewWorld makes a repository with a branch main.
func NewWorld(tb testing.TB, owner, name string) *World {
	tb.Helper()
	w := &World{
		Cast: Cast{Git: gittest.NewBareRepo(tb), Owner: owner, Name: name}, tb: tb, tokens: map[string]Token{},
		teams: []string{"platform"},
		rules: Rules{Methods: []string{"merge", "squash", "rebase"}, MaxPage: 100},
		now:   time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), ids: 100,
	}
	w.Git.Commit(gittest.Commit{Write: map[string]string{"README.md": "# workers\n"}})
	w.Bot, w.Person, w.Reader = w.NewUser("rampart-bot", Writes), w.NewUser("person", Writes),
		w.NewUser("reader", Reads)
	return w
}

// NewUser makes an account.
func (w *World) NewUser(login string, role Role) *User {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	u := &User{ID: w.ids, Login: login, Token: fmt.Sprintf("tok_%s_0123456789abcdef", login), Write: role == Writes,
		Guest: role == Stranger}
	w.users = append(w.users, u)
	w.tokens[u.Token] = Token{User: u}
	return u
}

// ReadToken is a token of a user that may only read.
func (w *World) ReadToken(u *User) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	token := "read_" + u.Token
	w.tokens[token] = Token{User: u, Read: true}
	return token
}

// ClassicToken is a token of a user that has scopes.
func (w *World) ClassicToken(u *User, scopes ...string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	token := "classic_" + strings.Join(scopes, "_") + u.Token
	w.tokens[token] = Token{User: u, Scopes: scopes}
	return token
}

// SetAdmin lets a user administer the repository, or not.
func (w *World) SetAdmin(u *User, admin bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u.Admin = admin
}

// SetRules changes what the repository asks for.
func (w *World) SetRules(change func(*Rules)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.rules)
}

// Rename gives the repository another owner and name, and gives them. The old ones lead to it.
func (w *World) Rename(owner, name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.renamed = w.Owner + "/" + w.Name
	w.Owner, w.Name = owner, name
	return owner + "/" + name
}

// Do gives a server the state for one request, after all that happened in Git was noticed.
func (w *World) Do(do func(*State)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &State{w}
	s.settle()
	do(s)
	s.settle()
}

// State is a World that no other goroutine uses at this time.
type State struct{ *World }

// Rules are what the repository asks for.
func (s *State) Rules() Rules { return s.rules }

// Renamed is the owner and name that it had before; it may be empty.
func (s *State) Renamed() string { return s.renamed }

// Token tells who has a token.
func (s *State) Token(token string) (Token, bool) {
	t, ok := s.tokens[token]
	return t, ok
}

// Pulls are all pull requests, the oldest first.
func (s *State) Pulls() []*Pull { return s.pulls }

// Pull is one of them, or nil.
func (s *State) Pull(number int) *Pull {
	if number < 1 || number > len(s.pulls) {
		return nil
	}
	return s.pulls[number-1]
}

// User is an account by its name, or nil.
func (s *State) User(login string) *User {
	i := slices.IndexFunc(s.users, func(u *User) bool { return u.Login == login })
	if i < 0 {
		return nil
	}
	return s.users[i]
}

// UserByAddress is the account with an e-mail address, or nil.
func (s *State) UserByAddress(address string) *User {
	i := slices.IndexFunc(s.users, func(u *User) bool { return u.Address() == address })
	if i < 0 {
		return nil
	}
	return s.users[i]
}

// People are the accounts of a commit's author and committer, nil for whom no account has the e-mail address of.
func (s *State) People(commit string) (author, committer *User) {
	addresses := strings.Fields(s.Git.Git("show", "-s", "--format=%ae %ce", commit))
	return s.UserByAddress(addresses[0]), s.UserByAddress(addresses[1])
}

// UserByID is an account, or nil.
func (s *State) UserByID(id int64) *User {
	i := slices.IndexFunc(s.users, func(u *User) bool { return u.ID == id })
	if i < 0 {
		return nil
	}
	return s.users[i]
}

// HasTeam says whether the organization has a team.
func (s *State) HasTeam(name string) bool { return slices.Contains(s.teams, name) }

// HasLabel says whether the repository has a label.
func (s *State) HasLabel(name string) bool { return slices.Contains(s.labels, name) }

// AddLabel makes a label.
func (s *State) AddLabel(name string) { s.labels = append(s.labels, name) }

// Tick is the time, a little later each time that it is asked for.
func (s *State) Tick() time.Time {
	s.now = s.now.Add(time.Second)
	return s.now
}

// Statuses are those of a commit, each context's last one.
func (s *State) Statuses(commit string) (all []Status) {
	for _, st := range slices.Backward(s.status) {
		if st.Commit == commit && !slices.ContainsFunc(all, func(o Status) bool { return o.Context == st.Context }) {
			all = append(all, st)
		}
	}
	return all
}

// SetStatus adds a status.
func (s *State) SetStatus(st Status) { s.status = append(s.status, st) }

// Commit says whether there is a commit.
func (s *State) Commit(hash string) bool {
	_, ok := s.Git.Try("cat-file", "-e", hash+"^{commit}")
	return ok
}

// Tip is what a branch points to; empty: there is none.
func (s *State) Tip(branch string) string {
	hash, _ := s.Git.Try("rev-parse", "--quiet", "--verify", "refs/heads/"+branch)
	return hash
}

// Open makes a pull request.
func (s *State) Open(p Pull) *Pull {
	now := s.Tick()
	p.Number, p.State, p.Created, p.Updated = len(s.pulls)+1, Open, now, now
	if !p.Fork {
		p.HeadCommit = s.Tip(p.Head)
	}
	s.pulls = append(s.pulls, &p)
	s.ref(&p)
	return &p
}

// ref keeps what a pull request is, whatever becomes of its branch.
func (s *State) ref(p *Pull) {
	if !p.Fork {
		s.Git.Git("update-ref", fmt.Sprintf("refs/pull/%d/head", p.Number), p.HeadCommit)
	}
}

// Touch notes that a pull request changed.
func (s *State) Touch(p *Pull) { p.Updated = s.Tick() }

// Close closes it, unmerged.
func (s *State) Close(p *Pull, by *User) {
	if p.State == Open {
		p.State, p.ClosedBy, p.Ended, p.Auto = Closed, by, s.Tick(), nil
		p.Updated = p.Ended
	}
}

// Forget makes the forge look for conflicts anew.
func (s *State) Forget(p *Pull) { p.looked = false }

// Looked says whether the forge knows of conflicts. It does the next time that it is asked.
func (s *State) Looked(p *Pull) bool {
	was := p.looked
	p.looked = true
	return was
}
