package mask

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// canonical is JSON without spaces, with the keys of objects sorted and nothing escaped that need not be.
func canonical(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// parsed reads one of the documents of a decision; numbers keep their text.
func parsed(name string, data []byte) (any, error) {
	v, err := v1alpha1.DecodeJSON(data)
	if err != nil {
		return nil, fmt.Errorf("decode the decision's %s: %w", name, err)
	}
	return v, nil
}
