package auditlog

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
)

func compressed(t testing.TB, lines string) []byte {
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return enc.EncodeAll([]byte(lines), nil)
}

// A person who pushes a segment cannot fill the memory of the process that reads it.
func TestMuchThatSaysLittle(t *testing.T) {
	testneed.Plain(t)
	var b bytes.Buffer
	enc, err := zstd.NewWriter(&b)
	require.NoError(t, err)
	for range maxUnpacked>>20 + 1 {
		_, err := enc.Write(bytes.Repeat([]byte("\n"), 1<<20))
		require.NoError(t, err)
	}
	require.NoError(t, enc.Close())
	require.Less(t, b.Len(), 1<<20)
	_, err = unpack(b.Bytes(), "")
	require.ErrorContains(t, err, "decompress it")
}

// A decision with a null is whole, so that a null in a line always means that something is gone.
func TestDecisionsWithANullAreWhole(t *testing.T) {
	var records []record
	for _, x := range []string{`{"b":1}`, `{"b":null}`, `{"b":null}`, `{}`} {
		d := Decision{ID: "x", Labels: map[string]string{"id": "bot"}, Timestamp: time.Unix(1e9, 0).UTC(), Path: Path, Result: []byte(`{}`),
			Input: []byte(`{"deployment":{"name":"n","namespace":"s"},"text":"` + strings.Repeat("x", 500) + `","x":` + x + `}`)}
		r, err := recordOf(&d)
		require.NoError(t, err)
		records = append(records, r)
	}
	segment, _, err := pack(records)
	require.NoError(t, err)
	dec, err := decoder()
	require.NoError(t, err)
	lines, err := dec.DecodeAll(segment, nil)
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(lines, []byte(`"patch":true`)), "the last one alone:\n%s", lines)
	again, err := unpack(segment, "s/n")
	require.NoError(t, err)
	for i := range records {
		require.Equal(t, string(records[i].line.appendJSON(nil)), string(again[i].line.appendJSON(nil)))
	}
}

// The names of segments say what is in them.
func TestSegmentNames(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 50, 0, 0, time.UTC)
	for _, s := range []segmentName{
		{number: 1, first: at, last: at, open: true}, {number: 999_999, first: at, last: at.Add(time.Hour)},
	} {
		again, err := parseSegmentName(s.String())
		require.NoError(t, err)
		require.Equal(t, s, again)
	}
	for _, name := range []string{
		"", "segment", "000001-20261126T125000Z.jsonl.zst", "000001-20261326T125000Z-20261126T125000Z.jsonl.zst",
	} {
		_, err := parseSegmentName(name)
		require.Error(t, err, name)
	}
}

// Whatever a segment holds, it is read, or an error says what is wrong.
func FuzzSegment(f *testing.F) {
	f.Add([]byte("\x28\xb5\x2f\xfd"), `{"about":"p/s/n","input":{"a":1}}`)
	f.Add([]byte{}, `{"about":"p/s/n","input":{"a":1},"timestamp":"2026-03-01T00:00:00Z"}`+"\n"+
		`{"about":"p/s/n","input":{"b":[null]},"patch":true}`)
	f.Add([]byte{}, `{"about":"p/s/n","input":{"a":{"b":"}"},"a":[{}]},"masked":1}`)
	f.Fuzz(func(t *testing.T, data []byte, lines string) {
		_, _ = unpack(data, "")
		records, err := unpack(compressed(t, lines), "")
		if err != nil {
			return
		}
		for _, r := range records {
			_, _ = new(restorer).decision(r)
		}
		segment, _, err := pack(records)
		require.NoError(t, err)
		_, _ = unpack(segment, "") // a key that sorts before "about" makes it another's
		for d, err := range ReadLines(context.Background(), strings.NewReader(lines)) {
			_, _ = d, err
		}
	})
}
