package printable

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInertTextMentionsAndClosesNothing(t *testing.T) {
	for in, want := range map[string]string{
		"":                             "",
		"Roll out v2 [prod] (1/2)":     "Roll out v2 [prod] (1/2)",
		"[skip ci] [CI skip] [no ci]":  "[ skip ci] [ CI skip] [ no ci]",
		"[actions skip] ***NO_CI***":   "[ actions skip] * * *NO_CI* * *",
		"Closes #12, gh-3 and !4":      "Closes ＃12, gh\u20113 and ！4",
		"Fixes SHOP-1":                 "Fixes SHOP\u20111",
		"SHOP-1: ask @team":            "SHOP-1: ask ＠team",
		"see https://example.com/a?b=": "see https: //example.com/a?b=",
	} {
		require.Equal(t, want, Inert(in))
	}
}
