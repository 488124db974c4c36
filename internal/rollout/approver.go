package rollout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// Approver says whether somebody other than who asked approved what a record proposes.
type Approver struct {
	// Routing is the Git blob hash of the routing.yaml that has the approval.
	Routing string `json:"routing"`
	// By is who approved, "" if that is not known.
	By string `json:"by,omitempty"`
	// Other is Yes where it is somebody else. No, and not known, are no approval.
	Other Answer `json:"other,omitempty"`
	// Why says what was compared, or why it is not known.
	Why string `json:"why"`
}

// ApproverAsk asks who approved what a record proposes.
type ApproverAsk struct {
	// Routing is the Git blob hash of the routing.yaml that has the approval.
	Routing string `json:"routing"`
	// Proposal that was approved, as the record has it.
	Proposal v1alpha1.RecordedProposal `json:"proposal"`
	// AskedIn are the commits by which people asked for it; none: not known.
	AskedIn []v1alpha1.AskingCommit `json:"askedIn,omitempty"`
}

// ApprovalCommit is the commit that put an approval on the branch of the output.
type ApprovalCommit struct {
	Commit string
	// Author and Committer as it names them: name <e-mail address>.
	Author, Committer string
	// Bot says that it is the bot's own, as it names itself: then it does not tell which person approved.
	Bot bool
	// Merge says that it has several parents.
	Merge bool
	// Signed says whether a signer that the bot trusts signed it, and Signer who; "" where the bot trusts none.
	Signed Answer
	Signer string
}

// ApprovedByCommit judges an approval by the commit that it came with.
func ApprovedByCommit(ask ApproverAsk, c ApprovalCommit) Approver {
	out := Approver{Routing: ask.Routing}
	switch {
	case len(ask.AskedIn) == 0:
		out.Why = "it is not known who asked for it"
		return out
	case c.Bot:
		out.Why = fmt.Sprintf("commit %s is the bot's own, and does not say who put it on the branch",
			shortHash(c.Commit))
		return out
	case c.Signed != "" && c.Signed != Yes:
		out.Why = fmt.Sprintf("commit %s of %s is not signed by a signer that the bot trusts", shortHash(c.Commit),
			c.Author)
		return out
	}
	out.By = c.Author
	for _, asking := range ask.AskedIn {
		for _, is := range []string{c.Author, c.Committer, c.Signer} {
			if SamePerson(is, asking.Author) || SamePerson(is, asking.Committer) {
				out.Other, out.Why = No, fmt.Sprintf("%s asked for it, in commit %s", is, shortHash(asking.Commit))
				return out
			}
		}
	}
	out.Other, out.Why = Yes, fmt.Sprintf("commit %s is of somebody who did not ask for it", shortHash(c.Commit))
	return out
}

// Merger is an account of a forge that merged, or approved, a pull request.
type Merger struct {
	Login string
	// Bot says that it is the bot's own.
	Bot bool
}

// ApprovedByMerge judges an approval by the accounts of the forge: one of those that approved it has to be none of
// those that asked.
func ApprovedByMerge(ask ApproverAsk, approvers []Merger, asked []string) Approver {
	out := Approver{Routing: ask.Routing, Other: No}
	if len(ask.AskedIn) == 0 {
		out.Other, out.Why = "", "it is not known who asked for it"
		return out
	}
	var same []string
	for _, m := range approvers {
		switch {
		case m.Bot || m.Login == "":
		case slices.ContainsFunc(asked, func(login string) bool { return strings.EqualFold(login, m.Login) }):
			same = append(same, m.Login)
		default:
			out.By, out.Other, out.Why = m.Login, Yes, m.Login+" did not ask for it"
			return out
		}
	}
	if len(same) == 0 {
		out.Other, out.Why = "", "the forge names no person who merged or approved it"
		return out
	}
	out.By, out.Why = strings.Join(same, ", "), strings.Join(same, ", ")+" asked for it, in commit "+
		shortHash(ask.AskedIn[len(ask.AskedIn)-1].Commit)
	return out
}

// webFlow is the e-mail address that GitHub commits by for everybody who uses its pages.
const webFlow = "noreply@github.com"

// SamePerson reports whether two signatures of commits, or names, are of one person as far as they tell. They are where
// they have the same e-mail address or the same name.
func SamePerson(a, b string) bool {
	nameA, mailA := nameAndMail(a)
	nameB, mailB := nameAndMail(b)
	if mailA == webFlow || mailB == webFlow {
		return false
	}
	return mailA != "" && mailA == mailB || nameA != "" && nameA == nameB || nameA != "" && nameA == mailB ||
		mailA != "" && mailA == nameB
}

// nameAndMail takes "name <e-mail address>" apart, in lower case.
func nameAndMail(text string) (name, mail string) {
	name, mail, _ = strings.Cut(strings.ToLower(text), "<")
	mail, _, _ = strings.Cut(mail, ">")
	return strings.Join(strings.Fields(name), " "), strings.TrimSpace(mail)
}

func shortHash(hash string) string { return hash[:min(len(hash), 10)] }
