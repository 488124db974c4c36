package webhook

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Bounds of what is remembered of deliveries. It is longer than a signed time may be off in both directions.
const (
	remembered    = 4096
	rememberedFor = time.Hour
)

// seen remembers when what was accepted lately came first. The times are by the caller's clock.
type seen struct {
	when *lru.Cache[string, time.Time]
}

func newSeen() seen {
	when, _ := lru.New[string, time.Time](remembered) // no error: the size is above zero
	return seen{when}
}

// again says whether a key was there before, and remembers it if not.
func (s seen) again(key string, now time.Time) bool {
	before, known, _ := s.when.PeekOrAdd(key, now)
	if known && now.Sub(before) > rememberedFor {
		s.when.Add(key, now)
		return false
	}
	return known
}
