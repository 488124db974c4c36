package mask

import lru "github.com/hashicorp/golang-lru/v2"

// remembered is what was found of texts, so that it is not looked for again.
type remembered struct {
	found *lru.Cache[string, bool]
}

// So many texts of so many bytes are remembered at most.
const (
	mostRemembered    = 8192
	longestRemembered = 512
)

func newRemembered() remembered {
	found, _ := lru.New[string, bool](mostRemembered) // no error: the size is above zero
	return remembered{found}
}

// of is what look finds of a text.
func (r remembered) of(text string, look func(string) bool) bool {
	if len(text) > longestRemembered {
		return look(text)
	}
	found, ok := r.found.Get(text)
	if !ok {
		found = look(text)
		r.found.Add(text, found)
	}
	return found
}
