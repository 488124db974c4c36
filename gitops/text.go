package gitops

import "unsafe"

// asText is a text that shares its bytes, which nobody writes to any more: all that is read of a record would be there twice.
func asText(data []byte) string { return unsafe.String(unsafe.SliceData(data), len(data)) }

// asBytes is the inverse of asText, for who reads alone.
func asBytes(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }
