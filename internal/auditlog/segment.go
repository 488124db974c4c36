package auditlog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

// record is a decision in a segment.
type record struct {
	// id of a decision that is to be written.
	id string
	// about is subject.String.
	about string
	at    time.Time
	// line is the whole line, without the ID, which is made again from the rest.
	line *node
}

// The fields of a line beside those of Decision.
const (
	aboutField = "about"
	patchField = "patch"
	idField    = "decision_id"
)

// recordOf makes the record of a decision.
func recordOf(d *Decision) (record, error) {
	s, err := d.subject()
	if err != nil {
		return record{}, err
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	err = enc.Encode(struct {
		About string `json:"about"`
		*Decision
	}{s.String(), d})
	if err != nil {
		return record{}, fmt.Errorf("encode decision %s: %w", d.ID, err)
	}
	if text.Len() > maxPushedJSON {
		return record{}, fmt.Errorf("decision %s has %d bytes: want at most %d", d.ID, text.Len(), maxPushedJSON)
	}
	line, err := parseNode(text.Bytes())
	if err != nil {
		return record{}, err
	}
	return record{d.ID, s.String(), d.Timestamp, line.with(idField, null)}, nil
}

// restorer makes decisions of records. Those that follow each other share what they have in common;
// BenchmarkDecisionLog takes twice as long without.
type restorer struct {
	text []byte
	// common is JSON of what the last decision may share, and last is that.
	common []byte
	last   Decision
}

// commonFields are those of a line that most decisions have in common.
func commonFields() []string { return []string{"bundles", "labels", "masked", "path"} }

// decision reads a record back. An error names the field.
func (x *restorer) decision(r record) (Decision, error) {
	common := &node{object: true}
	for _, name := range commonFields() {
		if value := r.line.get(name); value != nil {
			common.members = append(common.members, member{[]byte(`"` + name + `"`), value})
		}
	}
	if x.text = common.appendJSON(x.text[:0]); !bytes.Equal(x.text, x.common) {
		var d Decision
		if err := json.Unmarshal(x.text, &d); err != nil {
			return d, fmt.Errorf("decode the fields of the decision: %w", err)
		}
		x.common, x.last = bytes.Clone(x.text), d
	}
	d := x.last
	d.Timestamp = r.at
	if err := r.line.get(idField).unmarshal(&d.ID); err != nil {
		return d, fmt.Errorf("decode %s: %w", idField, err)
	}
	d.Input, d.Result = x.json(r.line.get("input")), x.json(r.line.get("result"))
	if len(d.Input) == 0 {
		return d, errors.New("it has no input")
	}
	if d.ID == "" {
		d.ID = d.digest()
	}
	return d, nil
}

// json is the text of a value; nil of none.
func (x *restorer) json(n *node) json.RawMessage {
	if n == nil {
		return nil
	}
	x.text = n.appendJSON(x.text[:0])
	return bytes.Clone(x.text)
}

// maxUnpacked bounds the lines of one segment, in bytes.
const maxUnpacked = 256 << 20

// decoder reads segments; it may be used by several goroutines.
var decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxUnpacked))
})

// packed is a segment, and what is in it.
type packed struct {
	segment []byte
	// decisions is how many there are, and size how many bytes their lines have.
	decisions, size int
	first, last     time.Time
}

// pack makes a segment of records in the order that compareRecords says. The line of a record is a patch to the one
// before where that has at most three quarters of the bytes: one that saves less is harder to read than the whole
// line. It keeps no record but the last.
func pack(records iter.Seq2[record, error]) (p packed, err error) {
	var lines []byte
	var last record
	for r, err := range records {
		if err != nil {
			return packed{}, err
		}
		start := len(lines)
		lines = r.line.appendJSON(lines)
		if last.line != nil && last.about == r.about && !bytes.Contains(lines[start:], null.text) {
			patch := cmp.Or(diff(last.line, r.line), &node{object: true})
			patch = patch.with(aboutField, r.line.get(aboutField)).with(patchField, &node{text: []byte("true")})
			if short := patch.appendJSON(nil); 4*len(short) <= 3*(len(lines)-start) {
				lines = append(lines[:start], short...)
			}
		}
		lines = append(lines, '\n')
		if p.decisions == 0 || r.at.Before(p.first) {
			p.first = r.at
		}
		if r.at.After(p.last) {
			p.last = r.at
		}
		p.decisions, last = p.decisions+1, r
	}
	if p.size = len(lines); p.size > maxUnpacked {
		return packed{}, fmt.Errorf("pack %d decisions: their lines have %d bytes: want at most %d", p.decisions,
			p.size, maxUnpacked)
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return packed{}, err
	}
	p.segment = enc.EncodeAll(lines, nil)
	return p, nil
}

// compareRecords orders the records of a segment: those about a worker deployment follow each other.
func compareRecords(a, b record) int {
	return cmp.Or(strings.Compare(a.about, b.about), a.at.Compare(b.at))
}

// inOrder gives records in the order of a segment.
func inOrder(records []record) iter.Seq2[record, error] {
	records = slices.Clone(records)
	slices.SortStableFunc(records, compareRecords)
	return func(yield func(record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// merged gives the records of several segments in the order of one. Of two that are equal, that of the earlier segment
// comes first.
func merged(segments []iter.Seq2[record, error]) iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		type head struct {
			record
			next func() (record, error, bool)
		}
		var heads []head
		advance := func(at int, next func() (record, error, bool)) error {
			r, err, ok := next()
			if ok && err == nil {
				heads = slices.Insert(heads, at, head{r, next})
			}
			return err
		}
		for _, s := range segments {
			next, stop := iter.Pull2(s)
			defer stop()
			if err := advance(len(heads), next); err != nil {
				yield(record{}, err)
				return
			}
		}
		for len(heads) > 0 {
			least := 0
			for i := range heads {
				if compareRecords(heads[i].record, heads[least].record) < 0 {
					least = i
				}
			}
			first := heads[least]
			if !yield(first.record, nil) {
				return
			}
			heads = slices.Delete(heads, least, least+1)
			if err := advance(least, first.next); err != nil {
				yield(record{}, err)
				return
			}
		}
	}
}

// unpack reads the records of a segment that are about a worker deployment; "" is any. Those about one follow each
// other, in the order of their time. An error names the line, and is the last thing that is given.
func unpack(segment []byte, deployment string) iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		dec, err := decoder()
		if err != nil {
			yield(record{}, err)
			return
		}
		lines, err := dec.DecodeAll(segment, nil)
		if err != nil {
			yield(record{}, fmt.Errorf("decompress it: %w", err))
			return
		}
		var in patcher
		for n := 1; len(lines) > 0; n++ {
			line, rest, _ := bytes.Cut(lines, []byte("\n"))
			lines = rest
			about, ok := aboutOf(line)
			if !ok {
				yield(record{}, fmt.Errorf("line %d: want %q as its first field", n, aboutField))
				return
			}
			if deployment != "" && !strings.HasSuffix(about, "/"+deployment) {
				continue
			}
			r, err := in.read(line)
			if err != nil {
				yield(record{}, fmt.Errorf("line %d: %w", n, err))
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// aboutOf is what a line of a segment is about, which is its first field.
func aboutOf(line []byte) (string, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"`+aboutField+`":"`))
	about, _, ended := bytes.Cut(rest, []byte(`"`))
	return string(about), ok && ended
}

// patcher has the last line.
type patcher struct{ last record }

// read reads a line: a whole one, or a merge patch to the line before, which is about the same.
func (p *patcher) read(text []byte) (record, error) {
	line, err := parseNode(text)
	if err != nil {
		return record{}, err
	}
	var r record
	about := line.get(aboutField)
	if before := p.last.line.get(aboutField); about != nil && before != nil && bytes.Equal(about.text, before.text) {
		r.about = p.last.about
	} else if err := about.unmarshal(&r.about); err != nil {
		return record{}, fmt.Errorf("decode %s: %w", aboutField, err)
	}
	if line.get(patchField) != nil {
		if p.last.line == nil || p.last.about != r.about {
			return record{}, fmt.Errorf("it is a patch, and the line before it is not about %q", r.about)
		}
		line = merge(p.last.line, line.with(patchField, null))
	}
	r.line = line
	if err := line.get("timestamp").unmarshal(&r.at); err != nil {
		return record{}, fmt.Errorf("decode timestamp: %w", err)
	}
	p.last = r
	return r, nil
}

// segmentName says what is in a segment: its number, the times of its first and last decision, and whether it is open:
// not merged yet.
type segmentName struct {
	number      int
	first, last time.Time
	open        bool
}

var segmentNames = regexp.MustCompile(`^(\d{6})-(\d{8}T\d{6}Z)-(\d{8}T\d{6}Z)(\.open)?\.jsonl\.zst$`)

// instant is how the names of segments have times.
const instant = "20060102T150405Z"

func (s segmentName) String() string {
	suffix := ""
	if s.open {
		suffix = ".open"
	}
	first, last := s.first.UTC().Format(instant), s.last.UTC().Format(instant)
	return fmt.Sprintf("%06d-%s-%s%s.jsonl.zst", s.number, first, last, suffix)
}

func parseSegmentName(name string) (s segmentName, err error) {
	parts := segmentNames.FindStringSubmatch(name)
	if parts == nil {
		return s, fmt.Errorf("%q is not the name of a segment, such as %q", name,
			segmentName{number: 17, first: time.Unix(1793534400, 0), last: time.Unix(1793535300, 0)})
	}
	if _, err := fmt.Sscanf(parts[1], "%d", &s.number); err != nil {
		return s, err
	}
	if s.first, err = time.Parse(instant, parts[2]); err != nil {
		return s, err
	}
	s.last, err = time.Parse(instant, parts[3])
	s.open = parts[4] != ""
	return s, err
}
