package mask

import "sync"

// remembered is what was found of texts, so that it is not looked for again. The zero value is ready.
type remembered struct {
	mu    sync.Mutex
	found map[string]bool
}

// So many texts of so many bytes are remembered at most; a full memory starts anew.
const (
	mostRemembered    = 8192
	longestRemembered = 512
)

// of is what look finds of a text.
func (r *remembered) of(text string, look func(string) bool) bool {
	if len(text) > longestRemembered {
		return look(text)
	}
	r.mu.Lock()
	found, ok := r.found[text]
	r.mu.Unlock()
	if ok {
		return found
	}
	found = look(text)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found == nil || len(r.found) >= mostRemembered {
		r.found = map[string]bool{}
	}
	r.found[text] = found
	return found
}
