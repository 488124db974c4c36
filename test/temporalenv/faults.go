package temporalenv

import (
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// FaultPoint is where a call fails.
type FaultPoint string

const (
	// BeforeForwarding refuses the call: the server never sees it.
	BeforeForwarding FaultPoint = "BeforeForwarding"
	// AfterForwarding loses the response: the server has done it, the caller is told of an error. A call that the
	// server refused keeps the server's error, and uses the fault up all the same.
	AfterForwarding FaultPoint = "AfterForwarding"
)

// Fault makes calls of one method fail.
type Fault struct {
	// Method is the short name of the method; empty means every mutating one.
	Method string
	Point  FaultPoint
	// Code and Message are what the caller is told. Default: Unavailable, "injected fault".
	Code    codes.Code
	Message string
	// Times is how many calls fail; 0 means all until the fault is removed.
	Times int
}

func (f Fault) status() error {
	if f.Code == codes.OK {
		f.Code = codes.Unavailable
	}
	if f.Message == "" {
		f.Message = "injected fault"
	}
	return status.Error(f.Code, f.Message)
}

func (f Fault) concerns(method string) bool {
	return f.Method == method || f.Method == "" && !reading(method)
}

// Hook sees a call before it is forwarded: the method's short name and the request, which it must not change.
type Hook func(method string, request proto.Message)

type faults struct {
	mu   sync.Mutex
	list []*activeFault
}

type activeFault struct {
	Fault
	namespace string
}

func (f *faults) add(namespace string, fault Fault) (remove func()) {
	if fault.Point != BeforeForwarding && fault.Point != AfterForwarding {
		panic("temporalenv: fault without a point: " + string(fault.Point))
	}
	a := &activeFault{Fault: fault, namespace: namespace}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, a)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.drop(a)
	}
}

func (f *faults) drop(a *activeFault) {
	f.list = slices.DeleteFunc(f.list, func(b *activeFault) bool { return a == b })
}

// take gives the oldest fault for a call and uses it up by one.
func (f *faults) take(namespace, method string) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.list {
		if a.namespace != namespace || !a.concerns(method) {
			continue
		}
		fault := a.Fault
		if a.Times == 1 {
			f.drop(a)
		} else if a.Times > 1 {
			a.Times--
		}
		return fault, true
	}
	return Fault{}, false
}

type hooks struct {
	mu   sync.Mutex
	list []*activeHook
}

type activeHook struct {
	hook      Hook
	namespace string
}

func (h *hooks) add(namespace string, hook Hook) (remove func()) {
	a := &activeHook{hook: hook, namespace: namespace}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, a)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.list = slices.DeleteFunc(h.list, func(b *activeHook) bool { return a == b })
	}
}

func (h *hooks) of(namespace string) []Hook {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []Hook
	for _, a := range h.list {
		if a.namespace == namespace {
			out = append(out, a.hook)
		}
	}
	return out
}
