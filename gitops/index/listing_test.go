package index

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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
	for i := range manyFolders + 2 { // two are left out
		e := tree.Entry{Name: fmt.Sprintf("f%02d", i), Kind: tree.IsFolder, Hash: below[i%len(below)]}
		out["root"] = append(out["root"], e)
	}
	return out
}

// TestListingTogetherIsListingOneByOne compares the two on random trees. They find the same, say of the same folder
// that it cannot be listed or is too much, and leave the same budget.
func TestListingTogetherIsListingOneByOne(t *testing.T) {
	listed, broken, tooMany := 0, 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		in, most := randomFolders(r), 1+r.IntN(4000)
		list := func(together bool) (*listing, string, int) {
			budget := tree.NewBudget()
			budget.SetLeft(most)
			all, err := below(in, ".", "root", walk{globs: []string{"**/*.yaml", "f01/**"},
				leaveOut: []string{"f02", "f04", "f03/e1"}, budget: budget, together: together})
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
		allTogether, whyTogether, leftTogether := list(true)
		require.Equal(t, why, whyTogether, "tree %d", seed)
		require.Equal(t, left, leftTogether, "tree %d", seed)
		require.Equal(t, all, allTogether, "tree %d", seed)
		if all != nil {
			listed++
		}
	}
	require.Greater(t, listed, 200)
	require.Greater(t, broken-tooMany, 200)
	require.Greater(t, tooMany, 200)
}

// counted is how often folders of a tree were listed.
type counted struct {
	folders
	times *int
}

func (c counted) List(dir, hash string) ([]tree.Entry, error) {
	*c.times++
	return c.folders.List(dir, hash)
}

// TestFoldersTooLargeTogetherAreNotHeld: each of four folders has 400 000 entries, and the next one is its first.
// The second is already too much, and no third one is listed while the first two are held.
func TestFoldersTooLargeTogetherAreNotHeld(t *testing.T) {
	chain, times := folders{}, 0
	many := make([]tree.Entry, 400_000)
	for i := range many {
		many[i] = tree.Entry{Name: fmt.Sprintf("f%06d", i), Kind: tree.IsFile}
	}
	for i := range 4 {
		many[0] = tree.Entry{Name: "a", Kind: tree.IsFolder, Hash: fmt.Sprint(i + 1)}
		chain[fmt.Sprint(i)] = slices.Clone(many)
	}
	_, err := below(counted{chain, &times}, ".", "0", walk{globs: []string{"**/*.yaml"}, budget: tree.NewBudget()})
	at, ok := errors.AsType[*tree.Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "a: there are more than 500000 files and folders", at.Path+": "+at.Error())
	require.Equal(t, 2, times)
}
