package render

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Proposed makes of a routing.yaml one in which people approve what they are asked. It asks for another routing, or has
// a stage of an evacuation approved, and differs in nothing else. It is not sealed: a seal is a line that changes with
// every other, so that two changes of the record would be in each other's way when they are merged. It is an error if
// the file holds no record, or none of that stage that waits.
func Proposed(routing []byte, ask rollout.ReviewAsk) ([]byte, error) {
	r, err := record(routing)
	if err != nil {
		return nil, err
	}
	if err := approveAsked(r, ask); err != nil {
		return nil, err
	}
	text, err := routingText(r)
	return []byte(text), err
}

// approveAsked changes a record that was decoded here as people would who approve.
func approveAsked(r *v1alpha1.Routing, ask rollout.ReviewAsk) error {
	if ask.Desired != nil {
		r.Spec.Desired = *ask.Desired
		return nil
	}
	for _, version := range r.Spec.Versions {
		for i := range version.Evacuations {
			if e := &version.Evacuations[i]; e.JobID == ask.Proposal.JobID && e.State == v1alpha1.EvacuationProposed {
				e.State = v1alpha1.EvacuationApproved
				return nil
			}
		}
	}
	return fmt.Errorf("no stage with the batch job %q waits for approval", ask.Proposal.JobID)
}

// SameProposal reports whether two of a routing.yaml differ only in where what they propose is reviewed. That is
// written down once it is known, and somebody may have approved by then what would be proposed anew.
func SameProposal(was, is []byte) bool {
	return bytes.Equal(reviewedNowhere(was), reviewedNowhere(is))
}

// reviewedNowhere is a routing.yaml without the addresses of pull requests, and without the seal over them. It stays as
// it is, if it holds no record, or one that is written another way than by the bot.
func reviewedNowhere(routing []byte) []byte {
	r, err := record(routing)
	if err != nil {
		return routing
	}
	if as, err := routingText(r); err != nil || as != string(routing) {
		return routing
	}
	delete(r.Metadata.Annotations, v1alpha1.AnnotationRoutingDigest)
	if r.Spec.Proposal != nil {
		r.Spec.Proposal.PullRequest = ""
	}
	for _, version := range r.Spec.Versions {
		for i := range version.Evacuations {
			version.Evacuations[i].PullRequest = ""
		}
	}
	out, err := routingText(r)
	if err != nil {
		return routing
	}
	return []byte(out)
}

func record(routing []byte) (*v1alpha1.Routing, error) {
	docs, problems := v1alpha1.Decode(layout.Routing, routing)
	for _, p := range problems {
		if p.Severity != v1alpha1.Warning {
			return nil, errors.New(p.String())
		}
	}
	if len(docs) != 1 {
		return nil, fmt.Errorf("%d documents where one is expected", len(docs))
	}
	r, ok := docs[0].Object.(*v1alpha1.Routing)
	if !ok {
		return nil, fmt.Errorf("%s where a record is expected", docs[0].Kind)
	}
	return r, nil
}
