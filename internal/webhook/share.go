package webhook

import (
	"net"
	"net/netip"
	"sync"
)

// atOnce is how many connections are open at the same time: that bounds the memory, and the open files.
const atOnce = 64

// sharing is a listener with a bound of open connections, which peers share. Where there are more, the peer that has
// most of them loses its oldest one. So a peer that opens many, and sends nothing on them, has no more than it leaves
// to others; and where all come through one proxy, those that are slow make way.
type sharing struct {
	net.Listener
	mu   sync.Mutex
	open []*shared // in the order in which they came
}

// shared is a connection of a sharing listener.
type shared struct {
	net.Conn
	peer netip.Prefix
	gone func(*shared)
}

// Accept gives the next connection, for which another may be closed.
func (l *sharing) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &shared{conn, peerOf(conn.RemoteAddr()), l.forget}
	if over := l.add(c); over != nil {
		_ = over.Close() // its peer sees that it is closed
	}
	return c, nil
}

// add adds a connection, and gives the one that makes way for it; nil: there is room.
func (l *sharing) add(c *shared) (over *shared) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, c)
	if len(l.open) <= atOnce {
		return nil
	}
	has := map[netip.Prefix]int{}
	for _, is := range l.open {
		has[is.peer]++
	}
	for _, is := range l.open {
		if over == nil || has[is.peer] > has[over.peer] {
			over = is
		}
	}
	return over
}

// forget forgets a connection that is closed.
func (l *sharing) forget(c *shared) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, is := range l.open {
		if is == c {
			l.open = append(l.open[:i], l.open[i+1:]...)
			return
		}
	}
}

// Close closes the connection, and makes room for another.
func (c *shared) Close() error {
	c.gone(c)
	return c.Conn.Close()
}

// peerOf is who a connection comes from: an IPv4 address, or the network of an IPv6 address, which one machine has a
// whole one of.
func peerOf(a net.Addr) netip.Prefix {
	const network = 64
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = network
	}
	peer, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return peer
}
