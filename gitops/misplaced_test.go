package gitops

import (
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

func TestSpecsInTheOutputAreReported(t *testing.T) {
	connection := "apiVersion: temporal.io/v1alpha1\nkind: Connection\nmetadata: {name: c, namespace: payments}\nspec: {hostPort: \"t:7233\"}\n"
	files := map[string]string{
		"workers/c.yaml":                     connection,
		"deploy/kustomization.yaml":          connection, // the bot's own names are its own matter
		"deploy/top.yaml":                    connection,
		"deploy/payments/in.yml":             connection,
		"deploy/payments/notes.txt":          connection,
		"deploy/payments/other.yaml":         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, annotations: {a: temporal.io}}\n",
		"deploy/payments/checkout/spec.yaml": "---\n---\n" + connection,
	}
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: files})
	repo := open(t, r)
	for range 2 { // what is remembered is reported again
		world, err := repo.Read(t.Context())
		require.NoError(t, err)
		var got []string
		for _, p := range world.Environments[0].Problems {
			got = append(got, p.String())
		}
		const why = " c has no effect here: below deploy is what the bot writes. Move the file to a folder beside it"
		require.Equal(t, []string{"deploy/payments/in.yml:1: Connection" + why, "deploy/top.yaml:1: Connection" + why,
			"deploy/payments/checkout/spec.yaml:3: Connection" + why}, got)
		r.Commit(gittest.Commit{Write: map[string]string{"README.md": "moved"}})
	}
}

func TestAFileInUTF16IsReported(t *testing.T) {
	text := "apiVersion: temporal.io/v1alpha1\r\nkind: Connection\r\nmetadata: {name: c, namespace: payments}\r\nspec: {hostPort: \"t:7233\"}\r\n"
	little, big := []byte{}, []byte{}
	for _, u := range utf16.Encode([]rune(text)) {
		little, big = append(little, byte(u), byte(u>>8)), append(big, byte(u>>8), byte(u))
	}
	for name, data := range map[string]string{"marked, little": "\xff\xfe" + string(little), "marked, big": "\xfe\xff" + string(big),
		"little": string(little), "big": string(big)} {
		t.Run(name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: map[string]string{"workers/c.yaml": data}})
			world, err := open(t, r).Read(t.Context())
			require.NoError(t, err)
			require.Len(t, world.Environments[0].Problems, 1)
			require.Equal(t, "workers/c.yaml:1: the file is UTF-16: save it as UTF-8", world.Environments[0].Problems[0].String())
		})
	}
}
