package index

import "unsafe"

// asText is a text that shares the bytes of data, which must not be written to any more. Without that, all that is
// read of a record would be there twice.
func asText(data []byte) string { return unsafe.String(unsafe.SliceData(data), len(data)) }

// asBytes is the inverse of asText, for who reads alone.
func asBytes(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }
