package githubtest

import (
	_ "embed"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/rampart-gitops/rampart/test/forgetest"
)

//go:embed testdata/schema.graphql
var schemaText string

var schema = sync.OnceValue(func() *ast.Schema {
	return gqlparser.MustLoadSchema(&ast.Source{Name: "schema.graphql", Input: schemaText})
})

// graph answers what is asked in GraphQL. A question that is not in the schema fails the test.
func graph(c *forgetest.Call) forgetest.Reply {
	var o struct {
		Query     string
		Variables map[string]any
	}
	c.Decode(&o)
	document, errs := gqlparser.LoadQueryWithRules(schema(), o.Query, rules.NewDefaultRules())
	if errs != nil {
		c.Server.Report("GraphQL: " + errs.Error())
		return refuse(http.StatusBadRequest, errs.Error())
	}
	operation := document.Operations[0]
	variables, err := validator.VariableValues(schema(), operation, o.Variables)
	if err != nil {
		c.Server.Report("GraphQL: " + err.Error())
		return refuse(http.StatusBadRequest, err.Error())
	}
	data := map[string]any{}
	for _, selection := range operation.SelectionSet {
		field := selection.(*ast.Field)
		value, kind, why := resolve(c, field, variables)
		if why != "" {
			return forgetest.Reply{Status: http.StatusOK, Body: map[string]any{
				"data":   map[string]any{field.Name: nil},
				"errors": []any{map[string]any{"type": kind, "path": []any{field.Name}, "message": why}},
			}}
		}
		data[field.Alias] = only(field.SelectionSet, value)
	}
	return forgetest.Reply{Status: http.StatusOK, Body: map[string]any{"data": data}}
}

// only gives what was asked for.
func only(asked ast.SelectionSet, value any) any {
	object, is := value.(map[string]any)
	if !is {
		return value
	}
	out := map[string]any{}
	for _, selection := range asked {
		field := selection.(*ast.Field)
		out[field.Alias] = only(field.SelectionSet, object[field.Name])
	}
	return out
}

func resolve(c *forgetest.Call, field *ast.Field, variables map[string]any) (value any, kind, why string) {
	if field.Name == "viewer" {
		return map[string]any{"login": c.By.Login, "databaseId": c.By.ID}, "", ""
	}
	if field.Name == "repository" {
		return asked(c, field, variables)
	}
	input := field.ArgumentMap(variables)["input"].(map[string]any)
	i := slices.IndexFunc(c.Pulls(), func(p *forgetest.Pull) bool { return nodeID(p) == input["pullRequestId"] })
	if i < 0 {
		return nil, "NOT_FOUND", fmt.Sprintf("Could not resolve to a node with the global id of '%v'.",
			input["pullRequestId"])
	}
	p := c.Pulls()[i]
	if token, _ := c.Token(strings.TrimPrefix(c.Request.Header.Get("Authorization"), "Bearer ")); token.Read ||
		!c.By.Write {
		return nil, "FORBIDDEN", "Resource not accessible by personal access token"
	}
	if field.Name == "disablePullRequestAutoMerge" {
		if p.Auto == nil {
			return nil, "UNPROCESSABLE", "Can't disable auto-merge for this pull request"
		}
		p.Auto = nil
	} else if kind, why = order(c, p, input); why != "" {
		return nil, kind, why
	}
	return map[string]any{"pullRequest": map[string]any{"number": p.Number}}, "", ""
}

// order orders an automatic merge, with GitHub's words where it cannot.
func order(c *forgetest.Call, p *forgetest.Pull, input map[string]any) (kind, why string) {
	head, _ := input["expectedHeadOid"].(string)
	method := strings.ToLower(fmt.Sprint(input["mergeMethod"]))
	switch {
	case c.Rules().NoAuto:
		return "UNPROCESSABLE", "Pull request Auto merge is not allowed for this repository"
	case p.State != forgetest.Open:
		return "UNPROCESSABLE", "Can't enable auto-merge for this pull request"
	case head != "" && head != p.HeadCommit:
		return "UNPROCESSABLE", "Head sha didn't match expected head oid"
	case p.Auto != nil:
		return "UNPROCESSABLE", "Pull request Auto merge is already enabled"
	case !slices.Contains(c.Rules().Methods, method):
		return "UNPROCESSABLE", "Merge method " + method + " merging is not allowed on this repository"
	case c.Blocked(p) == "":
		_, state := mergeable(c, p)
		if state == "unknown" {
			state = "clean"
		}
		return "UNPROCESSABLE", "Pull request Pull request is in " + state + " status"
	case c.Blocked(p) == forgetest.BlockedConflict:
		return "UNPROCESSABLE", "Pull request Pull request is in dirty status"
	}
	p.Auto = &forgetest.Auto{By: c.By, Method: method}
	return "", ""
}

// asked is the repository as its viewer sees it, with one branch.
func asked(c *forgetest.Call, field *ast.Field, variables map[string]any) (value any, kind, why string) {
	arguments := field.ArgumentMap(variables)
	if arguments["owner"] != c.Owner || arguments["name"] != c.Name || c.Rules().Private && c.By.Guest {
		return nil, "NOT_FOUND", fmt.Sprintf("Could not resolve to a Repository with the name '%v/%v'.",
			arguments["owner"], arguments["name"])
	}
	permission := "READ"
	if c.By.Write {
		permission = "WRITE"
	}
	body := map[string]any{"viewerPermission": permission, "ref": nil}
	for _, selection := range field.SelectionSet {
		if ref := selection.(*ast.Field); ref.Name == "ref" {
			full, _ := ref.ArgumentMap(variables)["qualifiedName"].(string)
			body["ref"] = branch(c, strings.TrimPrefix(full, "refs/heads/"))
		}
	}
	return body, "", ""
}

func branch(c *forgetest.Call, name string) any {
	if c.Tip(name) == "" {
		return nil
	}
	pushers, protected := c.Rules().Protected[name]
	if !protected {
		return map[string]any{"refUpdateRule": nil}
	}
	return map[string]any{"refUpdateRule": map[string]any{"viewerCanPush": slices.Contains(pushers, c.By.Login)}}
}
