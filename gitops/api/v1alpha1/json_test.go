package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// library reads a JSON value as DecodeJSON does where it asks the library.
func library(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

var jsonSeeds = []string{
	`{"a":1,"b":[true,false,null,"x",{}],"c":{"d":-1.5e+3,"e":[]}}`, ` [ 1 , "é" , { "a" : "\u003c\n\\" } ] `, `"a"`, `0`, `null`, `{"a":1,"a":2}`, `{"a":{"b":1},"a":2}`,
}

// What is JSON is read without the library.
func TestJSONIsRead(t *testing.T) {
	for _, text := range jsonSeeds {
		r := jsonReader{text: text}
		v, ok := r.value(0)
		require.True(t, ok && r.atEnd(), text)
		want, err := library([]byte(text))
		require.NoError(t, err)
		require.Equal(t, want, v, text)
	}
}

func TestBadJSONIsLeftToTheLibrary(t *testing.T) {
	for _, text := range []string{"", " ", "1\x00", "{", "}", `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{1:2}`, "[", "[1,]", "[,]", "[1 2]", "[1", `"`, `"\`, `"\q"`, "\"\n\"", "\"\xff\"",
		"tru", "truex", "nul", "01", "1.", "-", "+1", "1e", "1 2", "{}{}", `{"a" 1}`, `{"a":1 "b":2}`, strings.Repeat("[", maxJSONDepth+2) + strings.Repeat("]", maxJSONDepth+2), "\x00"} {
		r := jsonReader{text: text}
		_, ok := r.value(0)
		require.False(t, ok && r.atEnd(), "%q", text)
		want, wantErr := library([]byte(text))
		got, err := DecodeJSON([]byte(text))
		require.Equal(t, want, got)
		require.Equal(t, wantErr == nil, err == nil, "%q", text)
	}
}

// FuzzJSON: what is read is what the library reads.
func FuzzJSON(f *testing.F) {
	for _, text := range jsonSeeds {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := jsonReader{text: string(data)}
		v, ok := r.value(0)
		if !ok || !r.atEnd() {
			return
		}
		want, err := library(data)
		require.NoError(t, err)
		require.Equal(t, want, v)
	})
}
