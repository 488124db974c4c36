package webhook

import (
	"sync"
	"time"
)

// Bounds of what is remembered of deliveries. It is longer than a signed time may be off in both directions.
const (
	remembered    = 4096
	rememberedFor = time.Hour
)

// seen remembers what was accepted lately. The zero value remembers nothing yet.
type seen struct {
	mu   sync.Mutex
	when map[string]time.Time
	// order has the keys, the oldest first.
	order []string
}

// again says whether a key was there before, and remembers it if not.
func (s *seen) again(key string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.order) > 0 && (len(s.order) >= remembered || now.Sub(s.when[s.order[0]]) > rememberedFor) {
		delete(s.when, s.order[0])
		s.order = s.order[1:]
	}
	if _, known := s.when[key]; known {
		return true
	}
	if s.when == nil {
		s.when = map[string]time.Time{}
	}
	s.when[key] = now
	s.order = append(s.order, key)
	return false
}
