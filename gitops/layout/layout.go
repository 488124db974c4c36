// Package layout names the files and folders of a repository that Rampart reads and writes.
//
//	rampart.yaml                         the configuration
//	<output>/kustomization.yaml          lists the folders of worker deployments
//	<output>/hydrator.metadata           the commit that was rendered, for GitOps Promoter
//	<output>/<namespace>/<name>/         one worker deployment:
//	  routing.yaml                       its record
//	  status.yaml                        its status
//	  kustomization.yaml                 lists what CD applies
//	  versions/<build ID>/deployment.yaml, and a file for each object of a template
package layout

// The files.
const (
	Config        = "rampart.yaml"
	Routing       = "routing.yaml"
	Status        = "status.yaml"
	Kustomization = "kustomization.yaml"
	Deployment    = "deployment.yaml"
	Hydrator      = "hydrator.metadata"
)

// OfRecord are the files of a worker deployment that are not below a version.
func OfRecord() []string { return []string{Routing, Status, Kustomization} }

// Versions is the folder of a worker deployment that has a folder for each version.
const Versions = "versions"

// Version is the folder of a version, below that of its worker deployment.
func Version(buildID string) string { return Versions + "/" + buildID }

// VersionFile is a file in the folder of a version, below that of its worker deployment.
func VersionFile(buildID, name string) string { return Version(buildID) + "/" + name }
