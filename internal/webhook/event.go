package webhook

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// event is what a delivery is about, as it says.
type event struct {
	// forge is "" where no header says what happened.
	forge, name string
	payload     payload
}

// payload is what is looked at of a body. What is missing is empty; GitHub and Gitea have most names in common.
type payload struct {
	Ref         string `json:"ref"`
	RefType     string `json:"ref_type"`
	Repository  place  `json:"repository"`
	PullRequest struct {
		Head struct {
			Ref string `json:"ref"`
		} `json:"head"`
	} `json:"pull_request"`

	// Of GitLab.
	ObjectKind       string `json:"object_kind"`
	EventName        string `json:"event_name"`
	Project          place  `json:"project"`
	ObjectAttributes struct {
		SourceBranch string `json:"source_branch"`
	} `json:"object_attributes"`
}

// place is a repository's name at its forge.
type place struct {
	FullName          string `json:"full_name"`
	PathWithNamespace string `json:"path_with_namespace"`
}

// eventHeaders name what happened. Gitea sends GitHub's beside its own, and Forgejo Gitea's.
var eventHeaders = []struct{ forge, header string }{
	{"forgejo", "X-Forgejo-Event"}, {"gitea", "X-Gitea-Event"}, {"github", "X-GitHub-Event"},
	{"gitlab", "X-Gitlab-Event"},
}

// eventOf reads what happened. A body that is not JSON says nothing, and neither does a field of another type.
func eventOf(h http.Header, body []byte) event {
	var e event
	for _, known := range eventHeaders {
		if name := h.Get(known.header); name != "" {
			e.forge, e.name = known.forge, name
			break
		}
	}
	_ = json.Unmarshal(body, &e.payload)
	return e
}

// kind is a kind of events.
type kind string

const (
	kindPush   kind = "push"
	kindPull   kind = "pull request"
	kindOther  kind = "other"
	kindSystem kind = "system"
)

// kinds are those of events that matter, by their names at any forge.
var kinds = map[string]kind{
	"": kindPush, "push": kindPush, "create": kindPush, "delete": kindPush, "Push Hook": kindPush,
	"repository_update": kindPush,
	"pull_request":      kindPull, "pull_request_review": kindPull, "pull_request_approved": kindPull,
	"pull_request_rejected": kindPull,
	"pull_request_comment":  kindPull, "merge_request": kindPull, "Merge Request Hook": kindPull,
	"System Hook": kindSystem,
}

func (e event) kind() kind {
	k, ok := kinds[e.name]
	if k == kindSystem {
		k, ok = kinds[cmp.Or(e.payload.ObjectKind, e.payload.EventName, "unknown")]
	}
	if !ok {
		return kindOther
	}
	return k
}

// watch is what the bot looks at.
type watch struct {
	// repository is its path at the server, "" if it is not known.
	repository string
	// proposals begin the names of the branches that the bot has pull requests of.
	proposals []string
	branch    func(string) bool
}

// boring says why an event is surely of no interest, "" if it may be of some.
func (w watch) boring(e event) string {
	p := e.payload
	path := cmp.Or(p.Repository.FullName, p.Project.PathWithNamespace)
	if path != "" && w.repository != "" && !samePath(w.repository, path) {
		return fmt.Sprintf("it is about another repository, %.100q", path)
	}
	switch e.kind() {
	case kindPush:
		branch, isBranch := strings.CutPrefix(p.Ref, "refs/heads/")
		switch {
		case p.RefType == "tag", !isBranch && strings.HasPrefix(branch, "refs/"):
			return "it is about no branch"
		case branch != "" && !w.proposed(branch) && !w.branch(branch):
			return fmt.Sprintf("it is about another branch, %.100q", branch)
		}
	case kindPull:
		head := cmp.Or(p.PullRequest.Head.Ref, p.ObjectAttributes.SourceBranch)
		if head != "" && !w.proposed(head) {
			return fmt.Sprintf("it is about a pull request that is not a proposal, of branch %.100q", head)
		}
	default:
		return fmt.Sprintf("nothing depends on an event %.100q", e.name)
	}
	return ""
}

func (w watch) proposed(branch string) bool {
	return slices.ContainsFunc(w.proposals, func(prefix string) bool { return strings.HasPrefix(branch, prefix) })
}

// samePath says whether a path at a server may be that of the repository that a forge calls so. The forge may be below
// a path of its own.
func samePath(path, name string) bool {
	path, name = strings.ToLower(strings.Trim(path, "/")), strings.ToLower(strings.Trim(name, "/"))
	return path == name || strings.HasSuffix(path, "/"+name)
}
