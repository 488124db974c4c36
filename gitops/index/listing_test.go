package index

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/tree"
)

// folders is a tree of folders by their hashes. One that is not there cannot be listed.
type folders map[string][]tree.Entry

func (f folders) Root() string { return "root" }

func (f folders) List(dir, hash string) ([]tree.Entry, error) {
	if entries, ok := f[hash]; ok {
		return entries, nil
	}
	return nil, fmt.Errorf("%s cannot be listed", dir)
}

func (f folders) Read(string, string) ([]byte, error) { return nil, errors.ErrUnsupported }

// randomFolders are folders that each are in several others. One in forty cannot be listed, in half of the trees.
func randomFolders(r *rand.Rand) folders {
	out, below := folders{}, []string(nil)
	broken := r.IntN(2) == 0
	for level := range 4 {
		var here []string
		for i := range 6 {
			hash := fmt.Sprintf("%d-%d", level, i)
			var entries []tree.Entry
			for k := range r.IntN(8) {
				kinds := []tree.Kind{tree.IsFile, tree.IsOther, tree.IsStray}
				e := tree.Entry{Name: fmt.Sprintf("e%d.yaml", k), Kind: kinds[r.IntN(3)], Hash: fmt.Sprint(r.IntN(9))}
				if len(below) > 0 && r.IntN(2) == 0 {
					e = tree.Entry{Name: fmt.Sprintf("e%d", k), Kind: tree.IsFolder, Hash: below[r.IntN(len(below))]}
				}
				entries = append(entries, e)
			}
			if here = append(here, hash); !broken || r.IntN(40) > 0 {
				out[hash] = entries
			}
		}
		below = here
	}
	for i, hash := range below {
		out["root"] = append(out["root"], tree.Entry{Name: fmt.Sprintf("f%d", i), Kind: tree.IsFolder, Hash: hash})
	}
	return out
}

// TestListingOnAllCoresIsListingOneByOne compares the two on random trees. They find the same, say of the same folder
// that it cannot be listed or is too much, and leave the same budget.
func TestListingOnAllCoresIsListingOneByOne(t *testing.T) {
	listed, broken, tooMany := 0, 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		in, most := randomFolders(r), 1+r.IntN(2000)
		list := func(onCores bool) (*listing, string, int) {
			budget := tree.NewBudget()
			budget.SetLeft(most)
			all, err := below(in, ".", "root", walk{globs: []string{"**/*.yaml", "f1/**"}, leaveOut: []string{"f2", "f3/e1"},
				budget: budget, onCores: onCores})
			if err == nil {
				return all, "", budget.Left()
			}
			at, isBudget := errors.AsType[*tree.Error](err)
			if broken++; isBudget {
				tooMany++
				return nil, at.Path + ": " + at.Error(), -1
			}
			return nil, err.Error(), -1
		}
		all, why, left := list(false)
		allOnCores, whyOnCores, leftOnCores := list(true)
		require.Equal(t, why, whyOnCores, "tree %d", seed)
		require.Equal(t, left, leftOnCores, "tree %d", seed)
		require.Equal(t, all, allOnCores, "tree %d", seed)
		if all != nil {
			listed++
		}
	}
	require.Greater(t, listed, 200)
	require.Greater(t, broken-tooMany, 200)
	require.Greater(t, tooMany, 200)
}
