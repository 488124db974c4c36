package auditlog

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
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

// ReadLines reads decisions as WriteLines writes them, or as segments have them; empty lines do not count. It reads a
// line when it is asked for. An error names the line, and is the last thing that is given.
func ReadLines(ctx context.Context, r io.Reader) iter.Seq2[Decision, error] {
	return func(yield func(Decision, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, 64<<10), maxLine)
		var in patcher
		var out restorer
		n := 1
		fail := func(err error) { yield(Decision{}, fmt.Errorf("line %d: %w", n, err)) }
		for ; lines.Scan(); n++ {
			if err := ctx.Err(); err != nil {
				yield(Decision{}, context.Cause(ctx))
				return
			}
			if len(bytes.TrimSpace(lines.Bytes())) == 0 {
				continue
			}
			var d Decision
			record, err := in.read(bytes.Clone(lines.Bytes()))
			if err == nil {
				d, err = out.decision(record)
			}
			if err != nil {
				fail(fmt.Errorf("it is not a decision: %w", err))
				return
			}
			if !yield(d, nil) {
				return
			}
		}
		if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
			fail(fmt.Errorf("it is longer than %d bytes", maxLine))
		} else if err != nil {
			fail(err)
		}
	}
}
