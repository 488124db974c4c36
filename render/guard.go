package render

import (
	"fmt"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// What the guards and hints say to ArgoCD, Flux and Helm.
const (
	argoNoPrune     = "Prune=false"
	argoNoDelete    = "Delete=false" // nor when the Application is deleted
	argoNoDryRun    = "SkipDryRunOnMissingResource=true"
	fluxAsItIs      = "disabled"
	optionSeparator = ","
)

// guards are annotations that keep an object from being pruned: by Flux, and by Helm.
var guards = map[string]string{rollout.AnnotationFluxPrune: "disabled", rollout.AnnotationHelmPolicy: "keep"}

// setGuard guards a Deployment against pruning or lifts the guard. own are the annotations that the user gave the pod
// template, from which the Deployment's were copied: what they say of the same things survives the lifting.
func setGuard(annotations, own map[string]any, guard v1alpha1.Guard) error {
	options, err := text(annotations, rollout.AnnotationArgoSync)
	if err != nil {
		return err
	}
	ownOptions, err := text(own, rollout.AnnotationArgoSync)
	if err != nil {
		return err
	}
	switch guard {
	case v1alpha1.GuardOn:
		annotations[rollout.AnnotationArgoSync] = addOption(addOption(options, argoNoPrune), argoNoDelete)
		setAll(annotations, guards)
		return nil
	case v1alpha1.GuardOff:
	default:
		return fmt.Errorf("guard %q is neither %s nor %s", guard, v1alpha1.GuardOn, v1alpha1.GuardOff)
	}
	for _, option := range []string{argoNoPrune, argoNoDelete} {
		if !hasOption(ownOptions, option) {
			options = dropOption(options, option)
		}
	}
	_, isOwn := own[rollout.AnnotationArgoSync]
	putText(annotations, rollout.AnnotationArgoSync, options, isOwn)
	for key, value := range guards {
		if annotations[key] != value {
			continue
		}
		delete(annotations, key)
		if before, isOwn := own[key]; isOwn {
			annotations[key] = before
		}
	}
	return nil
}

// manifestText encodes an object. To one with a ${…} somewhere it adds that Flux is to leave it as it is: its
// post-build substitution would put something else there.
func manifestText(object map[string]any) (string, error) {
	text, err := yamlText(object)
	if err != nil || !strings.Contains(text, "${") {
		return text, err
	}
	annotations, err := annotationsOf(object)
	if err != nil {
		return "", err
	}
	annotations[rollout.AnnotationFluxSubstitute] = fluxAsItIs
	return yamlText(object)
}

// text gives an annotation, "" if it is missing.
func text(annotations map[string]any, key string) (string, error) {
	switch v := annotations[key].(type) {
	case string:
		return v, nil
	case nil:
		return "", nil
	}
	return "", fmt.Errorf("annotation %s is not a string", key)
}

// putText sets an annotation, or takes an empty one away unless the user wrote it so.
func putText(annotations map[string]any, key, value string, isOwn bool) {
	if value == "" && !isOwn {
		delete(annotations, key)
		return
	}
	annotations[key] = value
}

func hasOption(list, option string) bool {
	for o := range strings.SplitSeq(list, optionSeparator) {
		if strings.TrimSpace(o) == option {
			return true
		}
	}
	return false
}

func addOption(list, option string) string {
	switch {
	case hasOption(list, option):
		return list
	case list == "":
		return option
	}
	return list + optionSeparator + option
}

func dropOption(list, option string) string {
	var kept []string
	for o := range strings.SplitSeq(list, optionSeparator) {
		if strings.TrimSpace(o) != option {
			kept = append(kept, o)
		}
	}
	return strings.Join(kept, optionSeparator)
}
