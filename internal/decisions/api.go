package decisions

import "io"

// State is what the segments of an epoch, up to one of them, have taught: to code the next one, or to read it. It is
// rebuilt by decoding the epoch's segments in order.
type State struct{}

// NewState is the state before an epoch's first segment.
func NewState() *State { return &State{} }

// Next is the sequence of the segment that follows.
func (s *State) Next() int { return 0 }

// Over reports whether a decision of time t (Unix seconds) has to begin a new epoch, with a NewState: it is of another
// month than the epoch, or the state has grown to its bounds.
func (s *State) Over(unix int64) bool { return false }

// Encoder makes segments.
type Encoder struct{}

// NewEncoder makes segments that follow those that the state has seen. Nothing else may use the state meanwhile.
func NewEncoder(s *State) *Encoder { return &Encoder{} }

// Append codes decisions, in the order in which they are given, as the epoch's next segment. An error names the decision and
// leaves the state as it was. A segment that could not be written has to be written before the next one: where something
// else was written in its place, the state is rebuilt from what was written and the decisions are coded anew.
func (e *Encoder) Append(ds []Decision) ([]byte, error) { return nil, nil }

// Decoder reads segments.
type Decoder struct{}

// NewDecoder reads segments that follow those that the state has seen. Nothing else may use the state meanwhile.
func NewDecoder(s *State) *Decoder { return &Decoder{} }

// Decode gives the decisions of the next segment that the filter wants, in the order in which they were given to Append.
// Errors: ErrVersion, ErrOrder, or bytes that are damaged. After an error the state is of no use any more.
func (d *Decoder) Decode(segment []byte, f Filter) ([]Decision, error) { return nil, nil }

// ReadHeader reads a segment's header. Errors: ErrVersion, or bytes that are damaged.
func ReadHeader(segment []byte) (Header, error) { return Header{}, nil }

// WriteLines writes decisions as JSON lines.
func WriteLines(w io.Writer, ds ...Decision) error { return nil }

// ReadLines reads JSON lines; an error names the line.
func ReadLines(r io.Reader) ([]Decision, error) { return nil, nil }
