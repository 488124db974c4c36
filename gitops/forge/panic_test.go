package forge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// A library that breaks in any call ends that call.
func TestPanicEndsOneCallOnly(t *testing.T) {
	f := forge.Contained(nil)
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"whose":    func() error { _, err := f.Login(ctx); return err },
		"list":     func() error { _, err := f.List(ctx, forge.Filter{}); return err },
		"get":      func() error { _, err := f.Get(ctx, 1); return err },
		"open":     func() error { _, err := f.Open(ctx, forge.Opening{}); return err },
		"update":   func() error { return f.Update(ctx, 1, forge.Change{}) },
		"merge":    func() error { _, err := f.Merge(ctx, 1, forge.Merge{}); return err },
		"status":   func() error { return f.SetStatus(ctx, "c", forge.Status{}) },
		"statuses": func() error { _, err := f.Statuses(ctx, "c"); return err },
	} {
		err := call()
		var refused *forge.RefusedError
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, forge.ReasonReply, refused.Reason)
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "broke")
	}
}
