package operate

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/internal/gittest"
)

// A rollback takes the record alone where the branch has no configuration that can be used, or holds nothing but an
// output. Other commands, and a rollback where the configuration has the worker deployment, do not.
func TestFindByRecord(t *testing.T) {
	record := func(environment string) string {
		return fmt.Sprintf(`apiVersion: rampart.dev/v1alpha1
kind: Routing
metadata: {name: checkout, namespace: shop}
spec: {workerDeployment: shop/checkout, temporalNamespace: shop, specPath: a.yaml, desired: {current: ""}, environment: %s, managerIdentity: us/%[1]s}
`, environment)
	}
	const config = "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec: {environments: [{name: prod, specs: [w/*], output: {path: deploy}}]}\n"
	for name, c := range map[string]struct {
		files    map[string]string
		byRecord bool
		identity string
		err      string
	}{
		"broken":              {map[string]string{"rampart.yaml": config + "x", "deploy/shop/checkout/routing.yaml": record("prod")}, true, "us/prod", ""},
		"broken, no rollback": {map[string]string{"rampart.yaml": config + "x", "deploy/shop/checkout/routing.yaml": record("prod")}, false, "", "configuration cannot be used"},
		"an output alone":     {map[string]string{"deploy/shop/checkout/routing.yaml": record("prod")}, true, "us/prod", ""},
		"a folder below":      {map[string]string{"out/prod/shop/checkout/routing.yaml": record("prod")}, true, "us/prod", ""},
		"sound":               {map[string]string{"rampart.yaml": config, "deploy/shop/checkout/routing.yaml": record("former")}, true, "rampart/prod", ""},
		"without one":         {map[string]string{"deploy/shop/checkout/routing.yaml": record("default")}, true, "rampart/default", ""},
		"another":             {map[string]string{"rampart.yaml": config + "x", "deploy/shop/cart/routing.yaml": record("prod")}, true, "", "no record on branch main that names its environment is of shop/checkout"},
	} {
		t.Run(name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: c.files})
			a := &cmdutil.App{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Log: slog.New(slog.DiscardHandler)}
			repo, err := gitops.Open(gitops.Config{URL: r.URL(), Branch: "main", CacheDir: t.TempDir(), Log: a.Log, Now: a.Now})
			require.NoError(t, err)
			defer func() { require.NoError(t, repo.Close()) }()
			o := &operation{App: a, name: "shop/checkout", repo: repo, source: repo, byRecord: c.byRecord}
			at, err := o.find(t.Context())
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.identity, at.Environment.ManagerIdentity)
			require.Equal(t, r.Tip("main"), at.base)
		})
	}
}
