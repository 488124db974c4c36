package source

import (
	"errors"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"time"
)

// Serve builds the folders that come from a Process until there are no more. It is all that its process does: what it
// changes of the process it does not change back. Errors: those of reading and writing.
func Serve(from io.Reader, to io.Writer) error {
	if err := confine(DefaultMemory); err != nil {
		return err
	}
	debug.SetMemoryLimit(DefaultMemory * 2 / 3)
	debug.SetMaxStack(64 << 20)
	http.DefaultTransport = refusing{} // nothing asks for anything; this is in case that something does
	for {
		var in Input
		if err := receive(from, &in); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		alone := time.AfterFunc(4*DefaultTime, func() { os.Exit(1) }) // in case the bot is gone
		out, err := Build(in)
		alone.Stop()
		a := answer{Output: out}
		if err != nil && !errors.As(err, &a.Error) {
			a.Error = &Error{File: in.Marker, Message: oneLine(err.Error())}
		}
		if err := send(to, a); err != nil {
			return err
		}
	}
}

// refusing is a transport that sends nothing.
type refusing struct{}

// RoundTrip refuses.
func (refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, errors.New(r.URL.Redacted() + " is not asked: nothing is fetched")
}
