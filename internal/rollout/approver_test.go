package rollout

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

func TestSamePerson(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"Ada <ada@example.com>", "Ada <ada@example.com>", true},
		{"Ada L. <ADA@example.com>", "ada <ada@Example.com>", true},
		{"Ada  Lovelace <ada@home>", "ada lovelace <ada@work>", true},
		{"Ada <ada@example.com>", "Bob <bob@example.com>", false},
		{"ada@example.com", "Ada <ada@example.com>", true}, // a signer
		{"Ada <ada@example.com>", "ada@example.com", true},
		{"ada@example.com", "Bob <bob@example.com>", false},
		{"", "", false}, {" <>", " <>", false}, {"", "Ada <ada@example.com>", false}, {"<ada@example.com>", "Ada <ada@example.com>", true},
		{"GitHub <noreply@github.com>", "GitHub <noreply@github.com>", false}, {"Ada <ada@example.com>", "Ada <noreply@github.com>", false},
	} {
		require.Equal(t, c.want, SamePerson(c.a, c.b), "%q and %q", c.a, c.b)
		require.Equal(t, c.want, SamePerson(c.b, c.a), "%q and %q", c.b, c.a)
	}
}

func TestApprovedByCommit(t *testing.T) {
	const ada, bob, github = "Ada <ada@example.com>", "Bob <bob@example.com>", "GitHub <noreply@github.com>"
	asked := []v1alpha1.AskingCommit{{Commit: "0123456789abcdef", Author: "Grace <grace@example.com>"}, {Commit: "a1", Author: ada, Committer: github}}
	for name, c := range map[string]struct {
		commit ApprovalCommit
		want   Approver
	}{
		"another":                {ApprovalCommit{Author: bob, Committer: bob}, Approver{By: bob, Other: Yes, Why: "commit c1 is of somebody who did not ask for it"}},
		"another, by its pages":  {ApprovalCommit{Author: bob, Committer: github}, Approver{By: bob, Other: Yes, Why: "commit c1 is of somebody who did not ask for it"}},
		"who asked":              {ApprovalCommit{Author: ada, Committer: ada}, Approver{By: ada, Other: No, Why: ada + " asked for it, in commit a1"}},
		"who asked before":       {ApprovalCommit{Author: "grace <g@home>", Committer: bob}, Approver{By: "grace <g@home>", Other: No, Why: "grace <g@home> asked for it, in commit 0123456789"}},
		"in the name of another": {ApprovalCommit{Author: bob, Committer: ada}, Approver{By: bob, Other: No, Why: ada + " asked for it, in commit a1"}},
		"the bot's":              {ApprovalCommit{Author: "rampart", Bot: true}, Approver{Why: "commit c1 is the bot's own, and does not say who put it on the branch"}},
		"signed":                 {ApprovalCommit{Author: bob, Committer: bob, Signed: Yes, Signer: "bob@example.com"}, Approver{By: bob, Other: Yes, Why: "commit c1 is of somebody who did not ask for it"}},
		"signed by who asked":    {ApprovalCommit{Author: bob, Committer: bob, Signed: Yes, Signer: "ada@example.com"}, Approver{By: bob, Other: No, Why: "ada@example.com asked for it, in commit a1"}},
		"not signed":             {ApprovalCommit{Author: bob, Committer: bob, Signed: No}, Approver{Why: "commit c1 of " + bob + " is not signed by a signer that the bot trusts"}},
	} {
		c.commit.Commit, c.want.Routing = "c1", "blob"
		require.Equal(t, c.want, ApprovedByCommit(ApproverAsk{Routing: "blob", AskedIn: asked}, c.commit), name)
	}
	require.Equal(t, Approver{Routing: "blob", Why: "it is not known who asked for it"}, ApprovedByCommit(ApproverAsk{Routing: "blob"}, ApprovalCommit{Author: bob}))
}

func TestApprovedByMerge(t *testing.T) {
	ask := ApproverAsk{Routing: "blob", AskedIn: []v1alpha1.AskingCommit{{Commit: "a1", Author: "Ada <ada@example.com>"}}}
	bot := Merger{Login: "rampart", Bot: true}
	for name, c := range map[string]struct {
		approvers []Merger
		want      Approver
	}{
		"another merged":             {[]Merger{{Login: "bob"}}, Approver{By: "bob", Other: Yes, Why: "bob did not ask for it"}},
		"who asked merged":           {[]Merger{{Login: "Ada"}}, Approver{By: "Ada", Other: No, Why: "Ada asked for it, in commit a1"}},
		"another approved it before": {[]Merger{{Login: "ada"}, {Login: "bob"}}, Approver{By: "bob", Other: Yes, Why: "bob did not ask for it"}},
		"the bot merged":             {[]Merger{bot}, Approver{Why: "the forge names no person who merged or approved it"}},
		"nobody knows":               {[]Merger{{}}, Approver{Why: "the forge names no person who merged or approved it"}},
		"the bot, for who asked":     {[]Merger{bot, {Login: "ada"}}, Approver{By: "ada", Other: No, Why: "ada asked for it, in commit a1"}},
	} {
		c.want.Routing = "blob"
		require.Equal(t, c.want, ApprovedByMerge(ask, c.approvers, []string{"ada"}), name)
	}
	require.Equal(t, Approver{Routing: "blob", Why: "it is not known who asked for it"}, ApprovedByMerge(ApproverAsk{Routing: "blob"}, []Merger{{Login: "bob"}}, nil))
}
