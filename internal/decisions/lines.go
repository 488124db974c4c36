package decisions

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds a JSON line, in bytes.
const maxLine = 16 << 20

// WriteLines writes decisions as JSON lines.
func WriteLines(w io.Writer, ds ...Decision) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range ds {
		if err := enc.Encode(&ds[i]); err != nil {
			return fmt.Errorf("write decision %s: %w", ds[i].ID, err)
		}
	}
	return nil
}

// ReadLines reads JSON lines as WriteLines writes them; empty lines do not count. An error names the line.
func ReadLines(r io.Reader) ([]Decision, error) {
	var out []Decision
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var d Decision
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			return nil, fmt.Errorf("line %d: it is no decision in JSON: %w", n, err)
		}
		out = append(out, d)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d: it is longer than %d bytes", n+1, maxLine)
	} else if err != nil {
		return nil, fmt.Errorf("read line %d: %w", n+1, err)
	}
	return out, nil
}
