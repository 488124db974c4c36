// Package logtest keeps what a program logs or prints, for tests that read it while it is written.
package logtest

import (
	"bytes"
	"sync"
)

// Buffer is a bytes.Buffer that one goroutine may read while others write. The zero value is an empty buffer.
type Buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

// String gives all that was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}
