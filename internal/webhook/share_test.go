package webhook

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// from dials as another address of this machine.
func from(t *testing.T, address string, s *Server) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", s.Address())
	if err != nil {
		t.Skipf("this machine has no other address of its own: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// A client that opens connections and sends slowly, or nothing, does not keep the deliveries of others out. These may
// come from another address or from the same.
func TestSlowSendersMakeWay(t *testing.T) {
	for what, begins := range map[string]string{
		"nothing":  "",
		"a header": "POST /webhook HTTP/1.1\r\n",
		"a body": "POST /webhook HTTP/1.1\r\nHost: bot\r\nContent-Type: application/json\r\nContent-Length: 100\r\nX-Hub-Signature-256: sha256=" +
			sumOf("guessed", "{}") + "\r\n\r\n{",
	} {
		t.Run(what, func(t *testing.T) {
			d := newFixture(t, secretOther)
			s, stop := listening(t, ServerConfig{ReadTime: time.Minute}, d.handler)
			for range 2 * atOnce {
				_, err := io.WriteString(from(t, "127.0.0.9", s), begins)
				require.NoError(t, err)
			}
			for i, address := range []string{"127.0.0.10", "127.0.0.9", "127.0.0.1"} {
				client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
					DialContext: func(context.Context, string, string) (net.Conn, error) { return from(t, address, s), nil }}}
				body := fmt.Sprintf("{\"n\": %d}", i)
				r := delivery{"push", "a", body, secretOther}.github()
				r.RequestURI, r.URL.Scheme, r.URL.Host, r.URL.Path = "", "http", s.Address(), "/webhook"
				resp, err := client.Do(r.WithContext(t.Context()))
				require.NoError(t, err, address)
				require.Equal(t, http.StatusAccepted, resp.StatusCode, address)
				require.NoError(t, resp.Body.Close())
			}
			for _, c := range s.sharing.connections() {
				_ = c.Close() // else the server waits for them at its end
			}
			require.NoError(t, stop())
		})
	}
}

func (l *sharing) connections() []*shared {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.open)
}

// The peer that has most connections loses its oldest one.
func TestPeerWithMostConnectionsLosesOne(t *testing.T) {
	l := &sharing{}
	peer := func(n byte) netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, n}), 32) }
	add := func(n byte) (c, over *shared) {
		c = &shared{peer: peer(n)}
		return c, l.add(c)
	}
	var first *shared
	for i := range atOnce {
		n := byte(1)
		if i >= atOnce-2 {
			n = 2
		}
		c, over := add(n)
		require.Nil(t, over)
		if i == 0 {
			first = c
		}
	}
	_, over := add(2)
	require.Same(t, first, over)
	l.forget(over)
	require.Len(t, l.open, atOnce)
	_, over = add(1)
	require.Equal(t, peer(1), over.peer, "the newcomer's own")
	require.Same(t, l.open[0], over)
	l.forget(over)
	l.forget(over)
	require.Len(t, l.open, atOnce)

	even := &sharing{}
	for i := range atOnce + 1 {
		over = even.add(&shared{peer: peer(byte(i))})
	}
	require.Equal(t, peer(0), over.peer, "of peers that have as many, the oldest")
}

func TestPeerOf(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.7:99": "192.0.2.7/32", "[::ffff:192.0.2.7]:1": "192.0.2.7/32", "[2001:db8:1:2:3:4:5:6]:1": "2001:db8:1:2::/64", "[fe80::1%eth0]:1": "fe80::/64",
	} {
		require.Equal(t, want, peerOf(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))).String(), address)
	}
	require.False(t, peerOf(&net.UnixAddr{}).IsValid())
}
