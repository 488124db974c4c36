package decisions_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/internal/decisions"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// value draws any JSON value.
func value(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 9
		if depth == 0 {
			kinds = 7
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return rapid.Int64().Draw(t, "n")
		case 3:
			return json.Number(rapid.SampledFrom([]string{"0", "-0", "1.0", "-0.5", "1e400", "0.1234567890123456789", "12345678901234567890", "1E-7", "99.90", "-17"}).Draw(t, "number"))
		case 4:
			return rapid.SampledFrom([]string{"2026-03-03T12:00:00Z", "2026-03-03T12:00:07Z", "0000-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-03-03T12:00:00+01:00",
				"1.2.3-abcdef01", "v2", "Ramp/v2@10%", "", "\x00\x01\x02\x03", "<&>\u2028é\ufffd\U0001F600", "00012 and 7", "deadbeef01 deadbeef01"}).Draw(t, "text")
		case 5:
			return rapid.String().Draw(t, "any")
		case 6:
			return rapid.StringMatching(`[a-z]{1,5} [0-9]{1,20}/[0-9a-f]{8}`).Draw(t, "words")
		case 7:
			return rapid.SliceOfN(value(depth-1), 0, 4).Draw(t, "list")
		}
		return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "id", "buildID", "rate", "closed", "failed", "counted", "deployment", "firstRead", "versions", "", "é"}), value(depth-1), 0, 5).Draw(t, "object")
	})
}

// anyDecision has any input beside the deployment's name, and any result.
func anyDecision(t *rapid.T) decisions.Decision {
	in := rapid.MapOfN(rapid.SampledFrom([]string{"versions", "canary", "firstRead", "actions", "plan", "x"}), value(4), 0, 5).Draw(t, "input")
	in["deployment"] = map[string]any{"namespace": "n", "name": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")}
	result := map[string]any{"actions": rapid.MapOfN(rapid.String(), value(2), 0, 3).Draw(t, "actions"), "more": value(3).Draw(t, "more")}
	d := decisions.Decision{Path: "rampart", Timestamp: noon.Add(time.Duration(rapid.IntRange(-1000000, 1000000).Draw(t, "at")) * time.Second),
		Labels: map[string]string{"id": "x"}, Bundles: map[string]decisions.Bundle{"rampart": {Revision: rapid.String().Draw(t, "revision")}}}
	if rapid.Bool().Draw(t, "masked") {
		d.Masked = []string{"/input/x"}
	}
	d.Input, d.Result = marshalled(t, in), marshalled(t, result)
	return d
}

func marshalled(t require.TestingT, v any) json.RawMessage {
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}

// Whatever is coded comes back: the same JSON, numbers as they were written, in the same order.
func TestDecisionsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var segments [][]byte
		var want []decisions.Decision
		e, again := decisions.NewEncoder(decisions.NewState()), decisions.NewEncoder(decisions.NewState())
		for range rapid.IntRange(1, 4).Draw(t, "segments") {
			var ds []decisions.Decision
			for range rapid.IntRange(1, 5).Draw(t, "decisions") {
				ds = append(ds, anyDecision(t))
			}
			segment, err := e.Append(ds)
			require.NoError(t, err)
			same, err := again.Append(ds)
			require.NoError(t, err)
			require.Equal(t, segment, same, "two encoders write the same")
			segments, want = append(segments, segment), append(want, ds...)
		}
		var got []decisions.Decision
		d := decisions.NewDecoder(decisions.NewState())
		for _, s := range segments {
			more, err := d.Decode(s, decisions.Filter{})
			require.NoError(t, err)
			got = append(got, more...)
		}
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, plainly(t, want[i].Input), plainly(t, got[i].Input))
			require.Equal(t, plainly(t, want[i].Result), plainly(t, got[i].Result))
			require.NotEmpty(t, got[i].ID)
			got[i].ID, got[i].Input, got[i].Result, want[i].Input, want[i].Result = "", nil, nil, nil, nil
			require.Equal(t, want[i], got[i])
		}
	})
}

// plainly is canonical JSON: sorted keys, numbers as they were written.
func plainly(t require.TestingT, raw json.RawMessage) string {
	var v any
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	require.NoError(t, dec.Decode(&v))
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// epoch are segments of decisions about some deployments, more of them than there are in the first lane.
func epoch(t require.TestingT, deployments, rounds int) (segments [][]byte, all []decisions.Decision) {
	e := decisions.NewEncoder(decisions.NewState())
	for round := range rounds {
		var ds []decisions.Decision
		for i := range deployments {
			j := judged(strings.ReplaceAll(planted(fmt.Sprintf(`,"round":%d`, round*i)), `"name":"checkout"`, fmt.Sprintf(`"name":"d%d"`, i)), fmt.Sprintf("round %d", round))
			j.Now = noon.Add(time.Duration(round*60+i%7) * time.Second)
			d, err := decisions.New(j, masker(t))
			require.NoError(t, err)
			ds = append(ds, d)
		}
		segment, err := e.Append(ds)
		require.NoError(t, err)
		segments, all = append(segments, segment), append(all, ds...)
	}
	return segments, all
}

// A filter gives what it wants and nothing else, and changes nothing for what is read or written after it.
func TestFilters(t *testing.T) {
	segments, all := epoch(t, 150, 6)
	s := decisions.NewState()
	d := decisions.NewDecoder(s)
	only := func(segment []byte, f decisions.Filter) []decisions.Decision {
		got, err := d.Decode(segment, f)
		require.NoError(t, err)
		return got
	}
	require.Equal(t, all[77:78], only(segments[0], decisions.Filter{Deployment: "payments/d77"}))
	require.Empty(t, only(segments[1], decisions.Filter{Deployment: "payments/nobody"}))
	require.Equal(t, all[2*150+149:2*150+150], only(segments[2], decisions.Filter{Deployment: "payments/d149"}))
	var want []decisions.Decision
	for _, x := range all[3*150 : 4*150] {
		if !x.Timestamp.Before(noon.Add(182*time.Second)) && x.Timestamp.Before(noon.Add(184*time.Second)) {
			want = append(want, x)
		}
	}
	require.NotEmpty(t, want)
	require.Equal(t, want, only(segments[3], decisions.Filter{Since: noon.Add(182 * time.Second), Until: noon.Add(184 * time.Second)}))
	require.Equal(t, all[4*150:5*150], only(segments[4], decisions.Filter{}))
	written, err := decisions.NewEncoder(s).Append(all[5*150:])
	require.NoError(t, err)
	require.Equal(t, segments[5], written, "who read with filters writes what who wrote all writes")
}

// Many segments read ahead are as one after the other.
func TestEach(t *testing.T) {
	const deployments, rounds = 70, 2 * 32
	segments, all := epoch(t, deployments, rounds)
	for name, f := range map[string]decisions.Filter{"all": {}, "one": {Deployment: "payments/d66"}, "nobody": {Deployment: "payments/nobody"},
		"late": {Since: noon.Add(50 * time.Minute)}, "early": {Until: noon.Add(5 * time.Minute)}} {
		s := decisions.NewState()
		one := decisions.NewDecoder(decisions.NewState())
		at := 0
		n, err := decisions.NewDecoder(s).Each(t.Context(), segments[:rounds-1], decisions.Visitor{Filter: f, Visit: func(got []decisions.Decision) bool {
			want, err := one.Decode(segments[at], f)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s, segment %d", name, at)
			at++
			return true
		}})
		require.NoError(t, err)
		require.Equal(t, rounds-1, n)
		require.Equal(t, rounds-1, at)
		written, err := decisions.NewEncoder(s).Append(all[(rounds-1)*deployments:])
		require.NoError(t, err)
		require.Equal(t, segments[rounds-1], written, "who read with filters writes what who wrote all writes")
	}
}

func TestEachEnds(t *testing.T) {
	segments, all := epoch(t, 70, 40)
	visited := 0
	enough := decisions.Visitor{Visit: func([]decisions.Decision) bool { visited++; return visited < 3 }}
	s := decisions.NewState()
	n, err := decisions.NewDecoder(s).Each(t.Context(), segments, enough)
	require.NoError(t, err)
	require.Equal(t, []int{2, 3}, []int{n, visited})
	_, err = decisions.NewEncoder(s).Append(all[:1])
	require.Error(t, err, "it was read in part")

	bad := slices.Clone(segments)
	bad[20] = append([]byte(nil), bad[20]...)
	bad[20][len(bad[20])/2] ^= 1
	visited = 0
	everything := decisions.Visitor{Visit: func([]decisions.Decision) bool { visited++; return true }}
	n, err = decisions.NewDecoder(decisions.NewState()).Each(t.Context(), bad, everything)
	require.ErrorContains(t, err, "damaged")
	require.Equal(t, []int{20, 20}, []int{n, visited}, "what was before it is given")

	ctx, cancel := context.WithCancel(t.Context())
	_, err = decisions.NewDecoder(decisions.NewState()).Each(ctx, segments, decisions.Visitor{Visit: func([]decisions.Decision) bool { cancel(); return true }})
	require.ErrorIs(t, err, context.Canceled)
}

func TestSegmentsInAnotherOrder(t *testing.T) {
	segments, all := epoch(t, 3, 3)
	decode := func(segments ...[]byte) error {
		d := decisions.NewDecoder(decisions.NewState())
		for _, s := range segments {
			if _, err := d.Decode(s, decisions.Filter{}); err != nil {
				return err
			}
		}
		return nil
	}
	require.NoError(t, decode(segments...))
	require.ErrorIs(t, decode(segments[1]), decisions.ErrOrder)
	require.ErrorIs(t, decode(segments[0], segments[2]), decisions.ErrOrder)
	require.ErrorIs(t, decode(segments[0], segments[0]), decisions.ErrOrder)
	other, _ := epoch(t, 4, 2)
	require.ErrorContains(t, decode(segments[0], other[1]), "of another epoch")

	newer := append([]byte{2}, segments[0][1:]...)
	require.ErrorIs(t, decode(newer), decisions.ErrVersion)
	require.ErrorContains(t, decode(newer), "unknown version 2 of a segment of decisions: this Rampart reads 1")
	_, err := decisions.ReadHeader(newer)
	require.ErrorIs(t, err, decisions.ErrVersion)

	h, err := decisions.ReadHeader(segments[2])
	require.NoError(t, err)
	require.Equal(t, decisions.Header{Version: 1, Sequence: 2, Decisions: 3, First: noon.Add(2 * time.Minute), Last: noon.Add(2*time.Minute + 2*time.Second)}, h)

	s := decisions.NewState()
	_, err = decisions.NewDecoder(s).Decode(segments[0], decisions.Filter{})
	require.NoError(t, err)
	require.Equal(t, 1, s.Next())
	require.False(t, s.Over(noon.AddDate(0, 0, 28).Unix()))
	require.True(t, s.Over(noon.AddDate(0, 0, 29).Unix()), "another month")
	_ = all
}

// Each byte that is changed, and each that is cut off, is found, and none of them makes the reader fail otherwise.
func TestDamage(t *testing.T) {
	segments, _ := epoch(t, 3, 1)
	for i := range segments[0] {
		bad := []byte(string(segments[0]))
		bad[i] ^= 0x11
		_, err := decisions.NewDecoder(decisions.NewState()).Decode(bad, decisions.Filter{})
		require.Error(t, err, i)
		_, err = decisions.NewDecoder(decisions.NewState()).Decode(segments[0][:i], decisions.Filter{})
		require.Error(t, err, i)
	}
}

func TestWhatIsNoSegment(t *testing.T) {
	e := decisions.NewEncoder(decisions.NewState())
	good := []byte(planted(""))
	for name, c := range map[string]struct {
		d    decisions.Decision
		want string
	}{
		"nobody":   {decisions.Decision{Timestamp: noon, Input: []byte(`{}`), Result: []byte(`{}`)}, "which worker deployment"},
		"no JSON":  {decisions.Decision{Timestamp: noon, Input: good, Result: []byte(`{`)}, "decode the decision's result"},
		"two":      {decisions.Decision{Timestamp: noon, Input: good, Result: []byte(`1 2`)}, "more than one JSON value"},
		"fraction": {decisions.Decision{Timestamp: noon.Add(1), Input: good, Result: []byte(`{}`)}, "whole seconds"},
		"no time":  {decisions.Decision{Input: good, Result: []byte(`{}`)}, "before 1970"},
		"deep":     {decisions.Decision{Timestamp: noon, Input: good, Result: []byte(strings.Repeat("[", 100) + strings.Repeat("]", 100))}, "nested more than 64 deep"},
	} {
		c.d.ID = "some-id"
		_, err := e.Append([]decisions.Decision{c.d})
		require.ErrorContains(t, err, c.want, name)
		require.ErrorContains(t, err, "decision 1 (some-id)", name)
	}
	_, err := e.Append(nil)
	require.ErrorContains(t, err, "1 to")
	segments, all := epoch(t, 2, 1)
	written, err := e.Append(all)
	require.NoError(t, err)
	require.Equal(t, segments[0], written, "what was refused left nothing behind")
}

// What says little costs little, but not nothing to read: bytes are added, so that a reader can tell it from an attack.
func TestMuchThatSaysLittle(t *testing.T) {
	testneed.Plain(t)
	e, d := decisions.NewEncoder(decisions.NewState()), decisions.NewDecoder(decisions.NewState())
	for round := range 2 {
		var ds []decisions.Decision
		for i := range 40 {
			list := strings.Repeat("null,", 15000) + strconv.Itoa(100*round+i)
			one, err := decisions.New(judged(planted(`,"list":[`+list+`]`), ""), masker(t))
			require.NoError(t, err)
			ds = append(ds, one)
		}
		segment, err := e.Append(ds)
		require.NoError(t, err)
		require.Less(t, len(segment), 6000)
		got, err := d.Decode(segment, decisions.Filter{})
		require.NoError(t, err)
		require.Equal(t, ds, got)
	}
}

// FuzzDecode reads bytes of whoever may push to the ref: no panic, no endless work, and what is read can be written again.
func FuzzDecode(f *testing.F) {
	segments, _ := epoch(f, 3, 2)
	f.Add(segments[0])
	f.Add(segments[0][:len(segments[0])/2])
	f.Add([]byte{1, 0, 1, 0, 0, 1, 1, 1, 1, 1})
	big, _ := epoch(f, 70, 1)
	f.Add(big[0])
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 8 {
			return
		}
		body := data[:len(data)-4] // the check is made to fit, or nothing would get beyond it
		data = binary.BigEndian.AppendUint32(body[:len(body):len(body)], crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
		got, err := decisions.NewDecoder(decisions.NewState()).Decode(data, decisions.Filter{})
		if err != nil || len(got) == 0 {
			return
		}
		for _, d := range got {
			require.True(t, json.Valid(d.Input), string(d.Input))
			require.True(t, json.Valid(d.Result), string(d.Result))
		}
	})
}

// Who writes an epoch knows as well as who reads it when it is over.
func TestWriterGoesOnWithItsEpoch(t *testing.T) {
	s := decisions.NewState()
	d, err := decisions.New(judged(planted(""), "m"), masker(t))
	require.NoError(t, err)
	_, err = decisions.NewEncoder(s).Append([]decisions.Decision{d})
	require.NoError(t, err)
	require.False(t, s.Over(noon.AddDate(0, 0, 28).Unix()), "the same month")
	require.True(t, s.Over(noon.AddDate(0, 0, 29).Unix()), "another month")
}
