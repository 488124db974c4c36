package confined

import (
	"errors"
	"io"
	"net/http"
	"net/rpc"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
)

// Serve answers the calls of a Process by the methods of a service, as net/rpc has them, until there are no more. It is
// all that its process does: the bounds that it sets stay. The operating system refuses more memory than so many bytes,
// and a stack has an eighth of that. Errors: the bounds can't be set, or the service has no such methods.
func Serve(service any, memory uint64) error {
	if !racing {
		if err := limitMemory(memory); err != nil {
			return err
		}
		debug.SetMaxStack(int(memory / 8))
	}
	debug.SetGCPercent(400) // there is memory enough, until there is not
	debug.SetMemoryLimit(int64(memory) / 3 * 2)
	http.DefaultTransport = refusing{} // nothing asks for anything; this is in case that something does
	// A terminal and a service manager signal all processes of a group: it is the caller's to end this one.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	out := os.Stdout
	os.Stdout = os.Stderr // what a library prints goes beside the answers
	server := rpc.NewServer()
	if err := server.RegisterName(serviceName, service); err != nil {
		return err
	}
	server.ServeConn(struct {
		io.Reader
		io.WriteCloser
	}{calls{}, out})
	return nil
}

// calls are what the standard input brings. When there are no more, the process ends soon, whatever it still does.
type calls struct{}

// Read reads.
func (calls) Read(data []byte) (int, error) {
	n, err := os.Stdin.Read(data)
	if err != nil {
		time.AfterFunc(time.Second, func() { os.Exit(1) })
	}
	return n, err
}

// Serving gives serve where this program was started by Self with an argument; else nil.
func Serving(arg string, serve func() error) func() error {
	if len(os.Args) == 2 && os.Args[1] == arg {
		return serve
	}
	return nil
}

// serviceName is what methods are called by.
const serviceName = "Service"

// refusing is a transport that sends nothing.
type refusing struct{}

// RoundTrip refuses.
func (refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, errors.New(r.URL.Redacted() + " is not asked: nothing is fetched")
}
