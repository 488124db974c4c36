package cluster

import (
	"context"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// controllerImage is the last part of the name of the in-cluster worker controller's image.
const controllerImage = "temporal-worker-controller"

// pageSize bounds one answer of the API server.
const pageSize = 500

// Controllers are the Deployments of in-cluster worker controllers that have replicas, as namespace/name, sorted. They
// are those with a container whose image is named as the controller's is, whatever its registry and its tag.
func (c *Cluster) Controllers(ctx context.Context) ([]string, error) {
	var out []string
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.client.Resource(deploymentResource).List(ctx, options)
		if err != nil {
			return nil, c.failed("look for the in-cluster worker controller among the Deployments", err)
		}
		for _, d := range page.Items {
			if isController(&d) {
				out = append(out, d.GetNamespace()+"/"+d.GetName())
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			slices.Sort(out)
			return out, nil
		}
	}
}

func isController(deployment *unstructured.Unstructured) bool {
	replicas, given, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
	if given && replicas == 0 {
		return false
	}
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	return slices.ContainsFunc(containers, func(c any) bool {
		container, _ := c.(map[string]any)
		image, _ := container["image"].(string)
		name, _, _ := strings.Cut(path.Base(image), "@")
		name, _, _ = strings.Cut(name, ":")
		return name == controllerImage
	})
}
