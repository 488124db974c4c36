package policy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLooksAt(t *testing.T) {
	e := Compile(Config{})
	require.True(t, e.LooksAt("routing"))
	require.False(t, e.LooksAt("git"), "the library asks for no history")
	for text, want := range map[string]bool{
		`input.git.author == "Ada"`:                                   true,
		`some i; input.versions[i].buildID == input.git.commit`:       true,
		`some part; input[part].author == "Ada"`:                      true,
		`contains(json.marshal(input), "Ada")`:                        true,
		`f(input)`:                                                    true,
		`x := input.plan; x.git == "Ada"`:                             false,
		`input.plan["git"] == "Ada"`:                                  false,
		`every v in input.versions { v.buildID != input.git.commit }`: true,
	} {
		e := of("package rampart.rollout\n\nf(x) if x.git\n\nwarn contains {\"rule\": \"a\", \"msg\": \"b\"} if {\n\t" + text + "\n}\n")
		require.Empty(t, e.Problems(), text)
		require.Equal(t, want, e.LooksAt("git"), text)
	}
	require.True(t, Compile(Config{Floor: []Layer{{Name: "own", Modules: modules("package rampart.spec\n\nwarn contains {\"rule\": \"a\", \"msg\": input.git.author}\n")}}}).LooksAt("git"))
}
