package printable

import (
	"io"
	"regexp"
	"sync"
	"unicode/utf8"
)

// color is what a terminal is told of colors, which say nothing by themselves.
var color = regexp.MustCompile(`^\x1b\[[0-9;]{0,16}m`)

// Writer hands text on with what is hidden in it escaped, but for colors.
type Writer struct {
	to io.Writer
	mu sync.Mutex
	// rest is the beginning of a character whose end is yet to come.
	rest []byte
}

// NewWriter makes a Writer that hands on to another.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Write implements io.Writer. A character may come in parts, a color may not.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in := append(w.rest, p...)
	out := make([]byte, 0, len(in))
	for len(in) > 0 && utf8.FullRune(in) {
		r, n := utf8.DecodeRune(in)
		is := in[:n]
		switch {
		case r == 0x1b:
			if c := color.Find(in); c != nil {
				out, n = append(out, c...), len(c)
				break
			}
			out = escape(out, r)
		case Hidden(r):
			out = escape(out, r)
		default:
			out = append(out, is...)
		}
		in = in[n:]
	}
	w.rest = append([]byte(nil), in...)
	if _, err := w.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Unwrap gives the writer that w hands on to.
func (w *Writer) Unwrap() io.Writer { return w.to }

// Under gives what is written to in the end.
func Under(w io.Writer) io.Writer {
	for {
		u, ok := w.(interface{ Unwrap() io.Writer })
		if !ok {
			return w
		}
		w = u.Unwrap()
	}
}
