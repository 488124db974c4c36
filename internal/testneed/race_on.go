//go:build race

package testneed

const underRace = true
