package mask

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// parse reads one JSON value; numbers keep their text.
func parse(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

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

// parsed reads one of the documents of a decision.
func parsed(name string, data []byte) (any, error) {
	v, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("decode the decision's %s: %w", name, err)
	}
	return v, nil
}
