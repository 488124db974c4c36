//go:build !race

package testneed

const underRace = false
