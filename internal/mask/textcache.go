package mask

import lru "github.com/hashicorp/golang-lru/v2"

// textCache is what was found of texts, so that it is not looked for again.
type textCache struct {
	found *lru.Cache[string, bool]
}

// So many texts of so many bytes are cached at most.
const (
	mostCached    = 8192
	longestCached = 512
)

func newTextCache() textCache {
	found, _ := lru.New[string, bool](mostCached) // no error: the size is above zero
	return textCache{found}
}

// of is what look finds of a text.
func (r textCache) of(text string, look func(string) bool) bool {
	if len(text) > longestCached {
		return look(text)
	}
	found, ok := r.found.Get(text)
	if !ok {
		found = look(text)
		r.found.Add(text, found)
	}
	return found
}
