package render

import (
	"errors"
	"fmt"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// Proposed makes of a routing.yaml one that asks for another routing, and differs in nothing else. It is not sealed: a seal is a line that
// changes with every other, so that two changes of the record would be in each other's way when they are merged. It is an error if the
// file holds no record.
func Proposed(routing []byte, desired v1alpha1.DesiredRouting) ([]byte, error) {
	docs, problems := v1alpha1.Decode(routingFile, routing)
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
	asking := *r
	asking.Spec.Desired = desired
	return YAML(asking)
}
