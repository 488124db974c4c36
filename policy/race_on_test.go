//go:build race

package policy

// underRace says that the race detector runs, which multiplies the time and the memory that these tests measure.
const underRace = true
