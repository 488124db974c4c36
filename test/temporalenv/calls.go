package temporalenv

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Call is one mutating call of the workflow service that came through the proxy.
type Call struct {
	// Method is the short name, as in "SetWorkerDeploymentRampingVersion".
	Method    string
	Namespace string
	// Time is when the call arrived, Took how long its answer took.
	Time time.Time
	Took time.Duration
	// Request is the message as received, Response the server's; nil when there was none.
	Request, Response proto.Message
	// Forwarded is whether the server saw the call, Accepted whether it answered OK: both also when a fault kept the
	// answer from the caller.
	Forwarded, Accepted bool
	// Left is whether the caller was gone before the answer, and so cannot have heard it.
	Left bool
	// Code and Message are what the caller was told.
	Code    codes.Code
	Message string
}

func (c Call) answered(request, response proto.Message, err error) Call {
	st := status.Convert(err)
	c.Request, c.Response = request, response
	c.Took, c.Code, c.Message = time.Since(c.Time), st.Code(), st.Message()
	return c
}

// recorder keeps the mutating calls and counts all of them.
type recorder struct {
	mu    sync.Mutex
	list  []Call
	count map[string]map[string]int
}

// reading are the beginnings of method names that change nothing by themselves, or belong to a worker at work. Anything
// else counts as mutating, so that a method added to the API is not overlooked.
func reading(method string) bool {
	return slices.ContainsFunc([]string{
		"Count", "Describe", "Fetch", "Get", "List", "Poll", "Query", "Record", "Respond", "Scan", "Shutdown",
		"Validate",
	}, func(prefix string) bool { return strings.HasPrefix(method, prefix) })
}

func (r *recorder) add(c Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == nil {
		r.count = map[string]map[string]int{}
	}
	if r.count[c.Namespace] == nil {
		r.count[c.Namespace] = map[string]int{}
	}
	r.count[c.Namespace][c.Method]++
	if !reading(c.Method) {
		r.list = append(r.list, c)
	}
}

func (r *recorder) calls(namespace string) []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Call
	for _, c := range r.list {
		if c.Namespace == namespace {
			out = append(out, c)
		}
	}
	return out
}

func (r *recorder) counts(namespace string) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.count[namespace])
}

func routingCalls(calls []Call, deployment string) []string {
	out := []string{}
	for _, c := range calls {
		if what := routingCall(c, deployment); what != "" {
			out = append(out, what)
		}
	}
	return out
}

// routingCall is what an accepted call makes of a deployment's routing; "" if it is another call, or was not accepted.
func routingCall(c Call, deployment string) string {
	if !c.Accepted {
		return ""
	}
	switch r := c.Request.(type) {
	case *workflowservice.SetWorkerDeploymentCurrentVersionRequest:
		if deployment == "" || deployment == r.GetDeploymentName() {
			return "current " + buildID(r)
		}
	case *workflowservice.SetWorkerDeploymentRampingVersionRequest:
		if deployment == "" || deployment == r.GetDeploymentName() {
			return ramp(r)
		}
	}
	return ""
}

// routingChanges leaves out calls that repeated what was so already.
func routingChanges(calls []Call, deployment string) []string {
	out := []string{}
	eachRouting(calls, deployment, func(what string, _ Call, of *Call) {
		if of == nil {
			out = append(out, what)
		}
	})
	return out
}

// routingRepeats are calls that repeated what was so already, after the caller that had set it was told that it is.
func routingRepeats(calls []Call, deployment string) []string {
	out := []string{}
	eachRouting(calls, deployment, func(what string, c Call, of *Call) {
		if of != nil && !of.Left && of.Code == codes.OK && of.Time.Add(of.Took).Before(c.Time) {
			out = append(out, what)
		}
	})
	return out
}

// eachRouting goes through what accepted calls made of a deployment's routing, in the order in which they came: they
// are recorded when they are answered. of is the call before that set the same, nil if there was none: a call that
// repeats what is so is answered with the token that the change was answered with
// (TestFactSettingTheSameAgainIsOKWhateverTheToken).
func eachRouting(calls []Call, deployment string, see func(what string, c Call, of *Call)) {
	calls = slices.Clone(calls)
	slices.SortStableFunc(calls, func(a, b Call) int { return a.Time.Compare(b.Time) })
	last := map[string]*Call{}
	for _, c := range calls {
		what := routingCall(c, deployment)
		if what == "" {
			continue
		}
		answer, ok := c.Response.(interface{ GetConflictToken() []byte })
		if !ok {
			see(what, c, nil)
			continue
		}
		token := string(answer.GetConflictToken())
		see(what, c, last[token])
		last[token] = &c
	}
}

func ramp(r *workflowservice.SetWorkerDeploymentRampingVersionRequest) string {
	build := buildID(r)
	if build == unversioned && r.GetPercentage() == 0 {
		return "ramp none"
	}
	return fmt.Sprintf("ramp %s %s", build, strconv.FormatFloat(float64(r.GetPercentage()), 'g', -1, 32))
}

const unversioned = "unversioned"

// buildID is the build ID of a request in its present spelling, else in the one before it ("deployment.build").
func buildID(r interface {
	GetBuildId() string
	GetVersion() string
}) string {
	if b := r.GetBuildId(); b != "" {
		return b
	}
	if _, b, ok := strings.Cut(r.GetVersion(), "."); ok {
		return b
	}
	return unversioned
}
