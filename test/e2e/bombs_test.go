package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// threeSources takes specs as they are, from a chart and from a kustomization, all in one environment.
const threeSources = `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: default, specs: ["workers/*.yaml", charts/cart, stock], output: {path: deploy}}
`

// chart makes a chart of a template.
func chart(template string) map[string]string {
	return map[string]string{"charts/cart/Chart.yaml": "apiVersion: v2\nname: cart\nversion: 1.0.0\n", "charts/cart/templates/cart.yaml": template}
}

// In mid-ramp a chart does not render, or expands for ever, and a kustomization has a remote base, or includes itself.
// The rollout beside them goes on and can be rolled back. Their own worker deployments keep their versions and their
// traffic, say why, and can be rolled back, too.
func TestBombsBesideARamp(t *testing.T) {
	images := map[string]temporalenv.Image{}
	for _, name := range []string{"cart", "stock"} {
		images[name+":v1"], images[name+":v2"] = temporalenv.DefaultImage(name), temporalenv.DefaultImage(name)
	}
	w := newWorld(t, withImages(images))
	cart, stock := w.named("cart"), w.named("stock")
	all := []*world{w, cart, stock}
	const kept = "scaledownDelay: 1s, deleteDelay: 1s"
	push := func(message, tag, strategy string, more map[string]string) {
		t.Helper()
		files := chart(specText{name: "cart", image: "cart:" + tag, strategy: slowSteps, sunset: kept}.String())
		files[specFile] = specText{image: "app:" + tag, strategy: strategy, sunset: kept}.String()
		files["stock/kustomization.yaml"] = "resources: [stock.yaml]\n"
		files["stock/stock.yaml"] = specText{name: "stock", image: "stock:" + tag, strategy: slowSteps, sunset: kept}.String()
		for path, text := range more {
			files[path] = text
		}
		w.push(message, files)
	}
	bot := w.start()
	push("v1", "v1", slowSteps, map[string]string{"rampart.yaml": threeSources})
	w.eventually("v1 is current in all", func() bool {
		return !slices.ContainsFunc(all, func(w *world) bool { return w.reason() != "RolloutComplete" })
	})
	push("v2", "v2", slowSteps, nil)
	w.eventually("v2 ramps in all", func() bool {
		return !slices.ContainsFunc(all, func(w *world) bool { return w.reason() != "Ramping" || !slices.Contains(w.calls(), "ramp v2 10") })
	})

	held := []string{"current v1", "ramp v2 10"}
	for _, bad := range []struct {
		pushed, template, base, cart, stock string
	}{
		{"a chart that does not render, and a remote base", "{{ if }}\n", "https://example.com/base",
			"charts/cart/Chart.yaml: cannot be rendered: parse error at (cart/templates/bomb.yaml:1): missing value for if",
			`stock/kustomization.yaml:1: resources[1]: \"https://example.com/base\" is in another place`},
		{"bombs", "{{ range until 1000000 }}{{ range until 1000000 }}{{ end }}{{ end }}\n", "../again",
			"charts/cart/Chart.yaml: cannot be built: it takes longer than 5s: build less, and nothing that never ends", "cycle detected"},
	} {
		push(bad.pushed, "v2", "{strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 1s}, {rampPercentage: 50, pauseDuration: 1h}]%s}", map[string]string{
			"charts/cart/templates/bomb.yaml": bad.template,
			"stock/kustomization.yaml":        "resources: [stock.yaml, \"" + bad.base + "\"]\n",
			"again/kustomization.yaml":        "resources: [../stock]\n",
		})
		w.eventually("the ramp beside them goes on", func() bool { return slices.Contains(w.calls(), "ramp v2 50") })
		for of, why := range map[*world]string{cart: bad.cart, stock: bad.stock} {
			of.awaitReason("InvalidSpec")
			of.eventually("the status says why: "+why, func() bool { return strings.Contains(of.message(), strings.ReplaceAll(why, `\"`, `"`)) })
			of.eventually("the log says why: "+why, func() bool { return strings.Contains(bot.log.String(), why) })
		}
	}
	w.settle()
	for _, of := range []*world{cart, stock} {
		require.Equal(t, held, of.calls(), "everything stays as it is")
		require.Len(t, of.routing().Versions, 2)
		for _, v := range of.routing().Versions {
			require.NotContains(t, of.manifest(v.BuildID), "replicas: 0")
			require.NotEmpty(t, of.manifest(v.BuildID))
		}
	}

	for _, of := range all {
		require.Contains(t, of.say("rollback", "--reason", "timeouts").Did, "take traffic back from v2-")
		require.Equal(t, "ramp none", of.changes()[len(of.changes())-1])
	}
	w.awaitReason("RolledBack")
	for _, of := range []*world{cart, stock} {
		of.eventually("the status says both", func() bool { return strings.Contains(of.message(), "Meanwhile: ") })
		require.Equal(t, "InvalidSpec", of.reason())
	}

	push("mended", "v2", slowSteps, map[string]string{"charts/cart/templates/bomb.yaml": ""})
	for _, of := range []*world{cart, stock} {
		of.awaitReason("RolledBack")
		require.Equal(t, append(slices.Clone(held), "ramp none"), of.changes())
	}
	w.repo.Fsck()
}
