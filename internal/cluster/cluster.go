// Package cluster is a Kubernetes cluster as Rampart sees it. That is the custom resource definitions of its objects,
// the in-cluster worker controller that has definitions of the same names, and the pods of worker deployments.
//
// A Reader gets, lists and watches, and never writes. It may be used by several goroutines. It watches the namespaces
// that it is asked about, from the first question until some time after the last one; what it keeps of an object is
// in objects.go.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config says how to reach a cluster.
type Config struct {
	// Kubeconfig is a file; "": the one that kubectl uses (KUBECONFIG, else ~/.kube/config).
	Kubeconfig string
	// Context of the file; "": its current one.
	Context string
}

// Cluster is a connection to the API server of a cluster.
type Cluster struct {
	client dynamic.Interface
	// Host is the API server's address, for messages.
	Host string
}

// patience is how long one request may take, and how long the API server may take to serve a new definition.
const patience = 30 * time.Second

// Open reads a kubeconfig. Nothing is sent yet. Its errors name the file.
func Open(cfg Config) (*Cluster, error) {
	config, err := load(cfg)
	if err != nil {
		return nil, err
	}
	config.Timeout = patience
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	return &Cluster{client, config.Host}, nil
}

func load(cfg Config) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = cfg.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: cfg.Context})
	config, err := loader.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, errors.New("no kubeconfig: give one with --kubeconfig, or as KUBECONFIG")
	case err != nil:
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.UserAgent = "rampart"
	return config, nil
}

// failed says what was being done to a cluster when a request failed, and what a person can do.
func (c *Cluster) failed(doing string, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s in %s: the kubeconfig's user may not: %w", doing, c.Host, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s in %s: the API server does not accept the kubeconfig's credentials: %w", doing, c.Host,
			err)
	}
	return fmt.Errorf("%s in %s: %w", doing, c.Host, err)
}

var (
	definitionResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
	deploymentResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// get is an object without a namespace; nil: there is none.
func (c *Cluster) get(ctx context.Context, resource schema.GroupVersionResource,
	name string) (*unstructured.Unstructured, error) {
	found, err := c.client.Resource(resource).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}
