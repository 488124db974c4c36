package gittest

import (
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Cutter is a TCP proxy before a server that cuts connections in the middle. It may be used by several goroutines.
type Cutter struct {
	Addr string // host:port

	mu     sync.Mutex
	limits map[Direction]int64 // bytes until the cut; not there: none
	passed map[Direction]int64
	cuts   int
	open   map[net.Conn]bool
}

// Direction is where bytes go.
type Direction string

// The directions of a Cutter.
const (
	ToServer Direction = "to the server"
	ToClient Direction = "to the client"
)

// NewCutter stands before the server at target, host:port, until the test ends. It cuts nothing until it is told to.
func NewCutter(tb testing.TB, target string) *Cutter {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	c := &Cutter{Addr: listener.Addr().String(), limits: map[Direction]int64{}, passed: map[Direction]int64{},
		open: map[net.Conn]bool{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { c.serve(conn, target) })
		}
	})
	tb.Cleanup(func() {
		_ = listener.Close()
		c.cutAll()
		running.Wait()
	})
	return c
}

// Before gives a URL of the server behind, with the Cutter in its place.
func (c *Cutter) Before(tb testing.TB, raw string) string {
	tb.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		tb.Fatal(err)
	}
	u.Host = c.Addr
	return u.String()
}

// HostOf is the host:port of a URL.
func HostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Host
}

// CutAfter cuts all connections, with a reset, once so many more bytes went in a direction. After the cut it lets
// everything pass.
func (c *Cutter) CutAfter(d Direction, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limits[d] = c.passed[d] + bytes
}

// Mend cuts nothing any more.
func (c *Cutter) Mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limits = map[Direction]int64{}
}

// Passed is how many bytes went in a direction so far.
func (c *Cutter) Passed(d Direction) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.passed[d]
}

// Cuts is how often it cut.
func (c *Cutter) Cuts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cuts
}

func (c *Cutter) serve(client net.Conn, target string) {
	server, err := net.Dial("tcp", target)
	if err != nil {
		_ = client.Close()
		return
	}
	c.keep(client, server)
	defer c.forget(client, server)
	var both sync.WaitGroup
	both.Go(func() { c.pass(ToServer, server, client) })
	both.Go(func() { c.pass(ToClient, client, server) })
	both.Wait()
}

// pass copies until one end closes, or the limit is reached: then what was allowed still arrives.
func (c *Cutter) pass(d Direction, to, from net.Conn) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		allowed, cut := c.take(d, n)
		if _, failed := to.Write(buffer[:allowed]); failed != nil && err == nil {
			err = failed
		}
		if cut {
			c.cutAll()
			return
		}
		if err != nil {
			if tcp, ok := to.(*net.TCPConn); ok && errors.Is(err, io.EOF) {
				_ = tcp.CloseWrite()
			} else {
				_ = to.Close()
			}
			return
		}
	}
}

func (c *Cutter) take(d Direction, n int) (allowed int, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	limit, limited := c.limits[d]
	if limited && c.passed[d]+int64(n) >= limit {
		n = int(max(limit-c.passed[d], 0))
		c.limits = map[Direction]int64{}
		c.cuts++
		cut = true
	}
	c.passed[d] += int64(n)
	return n, cut
}

func (c *Cutter) keep(conns ...net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range conns {
		c.open[conn] = true
	}
}

func (c *Cutter) forget(conns ...net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
		delete(c.open, conn)
	}
}

// cutAll resets every connection.
func (c *Cutter) cutAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
}

// KnownHostsFor gives a known_hosts file that has the server's key under another address, such as that of a Cutter.
func (s *SSHServer) KnownHostsFor(tb testing.TB, addr string) string {
	tb.Helper()
	data, err := os.ReadFile(s.KnownHostsFile)
	if err != nil {
		tb.Fatal(err)
	}
	_, port, _ := strings.Cut(s.Addr, ":")
	_, other, _ := strings.Cut(addr, ":") // both are on 127.0.0.1
	file := filepath.Join(tb.TempDir(), "known_hosts")
	write(tb, file, strings.Replace(string(data), "]:"+port, "]:"+other, 1))
	return file
}
