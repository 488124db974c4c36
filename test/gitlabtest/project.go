package gitlabtest

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/test/forgetest"
)

func getUser(c *forgetest.Call) forgetest.Reply { return ok(person(c.By)) }

// getUserByID is the only answer that has the address which a user made public.
func getUserByID(c *forgetest.Call) forgetest.Reply {
	u := c.UserByID(int64(c.Number("id")))
	if u == nil {
		return refuse(http.StatusNotFound, "404 User Not Found")
	}
	body := maps.Clone(person(u).(map[string]any))
	body["public_email"] = u.Address()
	return ok(body)
}

// listUsers finds by the login, or by a part of the name or an address. A name may be anything, somebody's address too.
func listUsers(c *forgetest.Call) forgetest.Reply {
	found := []any{}
	switch search := c.Query("search"); {
	case search == imposed:
		found = append(found, person(c.Person))
	case search != "" && c.UserByAddress(search) != nil:
		found = append(found, person(c.UserByAddress(search)))
	}
	if u := c.User(c.Query("username")); u != nil {
		found = append(found, person(u))
	}
	return ok(found)
}

func getProject(c *forgetest.Call) forgetest.Reply {
	visibility := "public"
	if c.Rules().Private {
		visibility = "private"
	}
	return ok(map[string]any{
		"id": projectID, "name": c.Name, "path": c.Name, "path_with_namespace": c.Owner + "/" + c.Name,
		"default_branch": "main",
		"visibility":     visibility, "web_url": c.Server.URL + "/" + c.Owner + "/" + c.Name, "merge_method": method(c),
		"squash_option":                         squashOption(c),
		"only_allow_merge_if_pipeline_succeeds": len(c.Rules().Checks) > 0,
		"namespace":                             map[string]any{"id": 5, "full_path": c.Owner},
		"permissions": map[string]any{"project_access": map[string]any{"access_level": role(c.By),
			"notification_level": 3}, "group_access": nil},
	})
}

func role(u *forgetest.User) int {
	switch {
	case u.Admin:
		return 40 // Maintainer
	case u.Write:
		return 30 // Developer
	default:
		return 20 // Reporter
	}
}

func getBranch(c *forgetest.Call) forgetest.Reply {
	name := c.Param("branch")
	if c.Tip(name) == "" {
		return refuse(http.StatusNotFound, "404 Branch Not Found")
	}
	pushers, protected := c.Rules().Protected[name]
	return ok(map[string]any{
		"name": name, "protected": protected, "can_push": c.By.Write &&
			(!protected || slices.Contains(pushers, c.By.Login)),
		"web_url": c.Server.URL + "/" + c.Owner + "/" + c.Name + "/-/tree/" + name,
	})
}

// getToken tells the scopes of the token that asks.
func getToken(c *forgetest.Call) forgetest.Reply {
	token, _ := c.Token(strings.TrimPrefix(c.Request.Header.Get("Authorization"), "Bearer "))
	scope := "api"
	if token.Read {
		scope = "read_api"
	}
	return ok(map[string]any{"id": 7, "name": "rampart", "user_id": c.By.ID, "scopes": []string{scope}, "active": true,
		"revoked": false})
}

// listHooks tells those who administer the project. GitLab turns off what fails.
func listHooks(c *forgetest.Call) forgetest.Reply {
	if !c.By.Admin {
		return refuse(http.StatusForbidden, denied)
	}
	all := []any{}
	for i, h := range c.Rules().Hooks {
		alert := "executable"
		if h.Off {
			alert = "disabled"
		} else if h.Code >= http.StatusMultipleChoices {
			alert = "temporarily_disabled"
		}
		all = append(all, map[string]any{"id": i + 1, "url": h.URL, "project_id": projectID,
			"push_events":           slices.Contains(h.Events, "push"),
			"merge_requests_events": slices.Contains(h.Events, "pull_request"), "alert_status": alert})
	}
	page, header := forgetest.Page(c, all)
	return forgetest.Reply{Status: http.StatusOK, Header: header, Body: page}
}

// imposed is an address that is not the person's, and stands in their name.
const imposed = "somebody@elsewhere.example.com"

func getCommit(c *forgetest.Call) forgetest.Reply {
	commit := c.Param("sha")
	if !c.Commit(commit) {
		return refuse(http.StatusNotFound, "404 Commit Not Found")
	}
	who := strings.Split(c.Git.Git("show", "-s", "--format=%an%n%ae%n%cn%n%ce", commit), "\n")
	return ok(map[string]any{"id": commit, "author_name": who[0], "author_email": who[1], "committer_name": who[2],
		"committer_email": who[3]})
}

func createLabel(c *forgetest.Call) forgetest.Reply {
	var o struct{ Name string }
	c.Decode(&o)
	if c.HasLabel(o.Name) {
		return refuse(http.StatusConflict, "Label already exists")
	}
	c.AddLabel(o.Name)
	return created(label(o.Name))
}

func getLabel(c *forgetest.Call) forgetest.Reply {
	if !c.HasLabel(c.Param("label_id")) {
		return refuse(http.StatusNotFound, "404 Label Not Found")
	}
	return ok(label(c.Param("label_id")))
}

// createStatus refuses what is so already, as GitLab does: a finished one is set anew, one that waits cannot begin to
// wait.
func createStatus(c *forgetest.Call) forgetest.Reply {
	var o struct {
		State, Name, Context, Description string
		URL                               string `json:"target_url"`
	}
	c.Decode(&o)
	if o.Name == "" {
		o.Name = o.Context
	}
	commit := c.Param("sha")
	if !c.Commit(commit) {
		return refuse(http.StatusNotFound, "404 Commit Not Found")
	}
	waits := slices.ContainsFunc(c.Statuses(commit), func(s forgetest.Status) bool {
		return s.Context == o.Name && s.State == "pending"
	})
	if o.State == "pending" && waits {
		return refuse(http.StatusBadRequest,
			`Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition via "enqueue")`)
	}
	st := forgetest.Status{Commit: commit, Context: o.Name, State: o.State, Description: o.Description, URL: o.URL}
	c.SetStatus(st)
	return created(status(c, st))
}

func listStatuses(c *forgetest.Call) forgetest.Reply {
	if !c.Commit(c.Param("sha")) {
		return refuse(http.StatusNotFound, "404 Commit Not Found")
	}
	all := []any{}
	for _, st := range c.Statuses(c.Param("sha")) {
		if name := c.Query("name"); name == "" || name == st.Context {
			all = append(all, status(c, st))
		}
	}
	page, header := forgetest.Page(c, all)
	return forgetest.Reply{Status: http.StatusOK, Header: header, Body: page}
}
