package main

import (
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// state is what Git says of the worker deployment.
type state struct {
	routing v1alpha1.RoutingSpec
	status  v1alpha1.WorkerDeploymentStatus
}

// state reads the record at the tip; it is empty as long as there is none.
func (s *stage) state() (state, error) {
	var st state
	for _, name := range []string{"routing.yaml", "status.yaml"} {
		text, err := s.gitOut(s.bare, "show", "main:"+recordDir+"/"+name)
		if err != nil {
			return st, err
		}
		documents, _ := v1alpha1.Decode(name, []byte(text))
		for _, d := range documents {
			switch o := d.Object.(type) {
			case *v1alpha1.Routing:
				st.routing = o.Spec
			case *v1alpha1.WorkerDeployment:
				if o.Status != nil {
					st.status = *o.Status
				}
			}
		}
	}
	return st, nil
}

func (st state) reason() string {
	for _, c := range st.status.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			return c.Reason
		}
	}
	return ""
}

func is(buildID, tag string) bool { return strings.HasPrefix(buildID, tag+"-") }

func (st state) current(tag string) bool {
	return st.status.CurrentVersion != nil && is(st.status.CurrentVersion.BuildID, tag)
}

func (st state) ready(tag string) bool { return st.reason() == "RolloutComplete" && st.current(tag) }

// ramp is the percentage that a tag's version is to have, 0 for none.
func (st state) ramp(tag string) float64 {
	if r := st.routing.Desired.Ramping; r != nil && is(r.BuildID, tag) {
		return r.Percentage
	}
	return 0
}

func (st state) retired(tag string) bool {
	for _, v := range st.routing.Versions {
		if is(v.BuildID, tag) {
			return v.Guard == v1alpha1.GuardOff
		}
	}
	return false
}

func (st state) gone(tag string) bool {
	for _, v := range st.routing.Versions {
		if is(v.BuildID, tag) {
			return false
		}
	}
	return true
}

func (st state) barred(tag string) bool {
	for _, b := range st.routing.Bars {
		if is(b.BuildID, tag) {
			return true
		}
	}
	return false
}
