package auditlog

import (
	"bytes"
	"context"
	"fmt"
	"iter"
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

// unpacked are the records of a segment, in their order in it.
func unpacked(segment []byte, deployment string) (out []record, err error) {
	for r, err := range unpack(segment, deployment) {
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
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
	_, err = unpacked(b.Bytes(), "")
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
	p, err := pack(inOrder(records))
	require.NoError(t, err)
	segment := p.segment
	dec, err := decoder()
	require.NoError(t, err)
	lines, err := dec.DecodeAll(segment, nil)
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(lines, []byte(`"patch":true`)), "the last one alone:\n%s", lines)
	again, err := unpacked(segment, "s/n")
	require.NoError(t, err)
	for i := range records {
		require.Equal(t, string(records[i].line.appendJSON(nil)), string(again[i].line.appendJSON(nil)))
	}
}

// A line is a patch where that has at most three quarters of the bytes of the whole line.
func TestPatchesSaveAQuarter(t *testing.T) {
	for same, want := range map[int]int{2000: 1, 500: 1, 200: 0, 10: 0} {
		var records []record
		for i := range 2 {
			d := Decision{ID: "x", Labels: map[string]string{}, Timestamp: time.Unix(1e9, 0).UTC(), Path: Path, Result: []byte(`{}`),
				Input: fmt.Appendf(nil, `{"deployment":{"name":"n","namespace":"s"},"other":"%s","same":"%s"}`,
					strings.Repeat(fmt.Sprint(i), 1000), strings.Repeat("x", same))}
			r, err := recordOf(&d)
			require.NoError(t, err)
			records = append(records, r)
		}
		p, err := pack(inOrder(records))
		require.NoError(t, err)
		dec, err := decoder()
		require.NoError(t, err)
		lines, err := dec.DecodeAll(p.segment, nil)
		require.NoError(t, err)
		require.Equal(t, want, bytes.Count(lines, []byte(`"patch":true`)), "%d bytes are the same:\n%s", same, lines)
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
		_, _ = unpacked(data, "")
		records, err := unpacked(compressed(t, lines), "")
		if err != nil {
			return
		}
		for _, r := range records {
			_, _ = new(restorer).decision(r)
		}
		p, err := pack(inOrder(records))
		require.NoError(t, err)
		_, _ = unpacked(p.segment, "") // a key that sorts before "about" makes it another's
		for d, err := range ReadLines(context.Background(), strings.NewReader(lines)) {
			_, _ = d, err
		}
	})
}

// What is merged is as if it had been packed at once; what cannot be read ends it.
func TestMerged(t *testing.T) {
	var all []record
	var segments []iter.Seq2[record, error]
	for part := range 3 {
		var some []record
		for i := range 4 {
			d := Decision{ID: "x", Labels: map[string]string{"id": "bot"}, Timestamp: time.Unix(1e9+int64(10*i+part), 0).UTC(), Path: Path, Result: []byte(`{}`),
				Input: fmt.Appendf(nil, `{"deployment":{"name":"n%d","namespace":"s"},"text":%q,"part":%d}`, i%2, strings.Repeat("x", 500), part)}
			r, err := recordOf(&d)
			require.NoError(t, err)
			some = append(some, r)
		}
		all = append(all, some...)
		p, err := pack(inOrder(some))
		require.NoError(t, err)
		segments = append(segments, file{data: p.segment}.records(""))
	}
	want, err := pack(inOrder(all))
	require.NoError(t, err)
	got, err := pack(merged(segments))
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, 12, got.decisions)
	require.Equal(t, []int64{1e9, 1e9 + 32}, []int64{got.first.Unix(), got.last.Unix()})

	for _, broken := range []string{"x", `{"about":"/s/n0","timestamp":"2000-01-01T00:00:00Z"}` + "\nx"} {
		_, err = pack(merged(append(segments, file{data: compressed(t, broken)}.records(""))))
		require.ErrorContains(t, err, "line ")
	}
}
