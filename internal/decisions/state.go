package decisions

import (
	"fmt"
	"slices"
	"time"
)

// lanes of an epoch. The first deployments are all in the first, so that a small installation has one.
const (
	lanes     = 8
	firstLane = 64
)

// Bounds of what a state holds. Where it gets beyond them a new epoch begins.
const (
	maxLearned     = 1 << 21
	maxDeployments = 1 << 15
)

// State is what the segments of an epoch, up to one of them, have taught: to code the next one, or to read it. It is
// rebuilt by decoding the epoch's segments in order.
type State struct {
	sequence int
	// check of the last segment, over all before it.
	check uint32
	month time.Time
	// err is why it is of no use any more.
	err error

	mem         *memory
	lanes       [lanes]*lane
	deployments map[string]*deployment
	// order of the deployments, the one that was decided about last first.
	order    []*deployment
	lastTime int64
}

// NewState is the state before an epoch's first segment.
func NewState() *State {
	return &State{mem: newMemory(headBits), deployments: map[string]*deployment{}}
}

// Next is the sequence of the segment that follows.
func (s *State) Next() int { return s.sequence }

// Over reports whether a decision of time t (Unix seconds) has to begin a new epoch, with a NewState: it is of another
// month than the epoch, or the state has grown to its bounds.
func (s *State) Over(unix int64) bool {
	if s.sequence == 0 {
		return false
	}
	learned := 0
	for _, l := range s.lanes {
		if l != nil {
			learned += l.learned()
		}
	}
	return !monthOf(unix).Equal(s.month) || learned > maxLearned || len(s.deployments) > maxDeployments
}

func monthOf(unix int64) time.Time {
	t := time.Unix(unix, 0).UTC()
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// head codes time and deployment of each decision, for all lanes.
type head struct {
	*State
	*coder
}

func (h *head) entry(e *entry) error {
	h.contexts(askWhen<<24, askWhen, mix(askWhen, 1))
	now := h.lastTime + h.signed(e.now-h.lastTime)
	if now < 0 || now > maxInstant {
		return fmt.Errorf("%w: an instant is out of bounds", errDamaged)
	}
	h.lastTime, e.now = now, now
	var err error
	e.of, err = h.who(e.name)
	return err
}

// who codes the deployment: how many others were decided about since it was last.
func (h *head) who(name string) (*deployment, error) {
	at := uint64(0) // 0: one that is new
	if !h.reading {
		at = uint64(slices.IndexFunc(h.order, func(d *deployment) bool { return d.name == name }) + 1)
	}
	h.contexts(askWho<<24, askWho, mix(askWho, size(int64(len(h.order)))))
	at = h.number(at)
	if at > uint64(len(h.order)) {
		return nil, fmt.Errorf("%w: it is about a deployment that was never named", errDamaged)
	}
	if at > 0 {
		d := h.order[at-1]
		copy(h.order[1:at], h.order[:at-1])
		h.order[0] = d
		return d, nil
	}
	name, err := h.newName(name)
	if err != nil {
		return nil, err
	}
	n := len(h.order)
	d := &deployment{name: name}
	if n >= firstLane {
		d.lane = n % lanes
	}
	h.deployments[name] = d
	h.order = slices.Insert(h.order, 0, d)
	return d, nil
}

func (h *head) newName(name string) (string, error) {
	h.contexts(askLength<<24, askLength)
	n := h.number(uint64(len(name)))
	if n > maxName || len(h.order) >= 2*maxDeployments {
		return "", fmt.Errorf("%w: a deployment's name has %d bytes, or there are too many", errDamaged, n)
	}
	out := make([]byte, 0, n)
	for i := range int(n) {
		b := byte(0)
		if !h.reading {
			b = name[i]
		}
		h.contexts(askByte<<24, mix(askByte, hashTail(out, 1)), mix(askByte+256, hashTail(out, 2)), mix(askByte+512, hashTail(out, 4)))
		out = append(out, byte(h.symbol(uint32(b), 8)))
	}
	if h.reading && h.deployments[string(out)] != nil {
		return "", fmt.Errorf("%w: a deployment is named twice", errDamaged)
	}
	return string(out), nil
}

// maxName of a deployment, namespace/name.
const maxName = 1 << 10

// headBits is the size of the memory for the heads of segments.
const headBits = 14
