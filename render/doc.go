// Package render turns a Plan into the files it leads to. These are the versioned Deployments of a worker deployment,
// its routing, its status, and the kustomization.yaml files that list what is applied.
//
// It is pure: values in, values out, safe for concurrent use, and nothing that was handed in is changed. The same input
// gives the same bytes on every machine: keys are sorted, and no clock, host or version of the tool is in a file.
//
// A version's files are written once, from the pod template as the user wrote it and never through Kubernetes' types,
// so that no library upgrade changes a byte. Afterwards an existing manifest is edited, not rendered again: a newer
// Rampart leaves what it finds. The form of a Deployment is the in-cluster controller's, so that its objects can be
// taken over, except that there are no owner references (Git knows no owner's UID), that strategy and
// progressDeadlineSeconds are passed on, and that prune guards are set.
package render
