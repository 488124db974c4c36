package temporal

import (
	"fmt"
	"net"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// TakesSecrets says why no Secret may be sent by a connection, nil if one may. One may be sent only to an address that
// the bot's own configuration names, and over TLS unless that is this machine. Otherwise a person who may push a
// connection could have it sent anywhere.
func (p *Pool) TakesSecrets(conn v1alpha1.Connection) error {
	r, err := p.cfg.resolve(conn)
	if err != nil {
		return err
	}
	name := nameOf(conn)
	if r.source == "repository" || r.source == "connection "+name && p.cfg.Connections[name].HostPort == "" {
		return fmt.Errorf("a Secret goes only to an address that the bot's own configuration names, and %s of "+
			"connection %s is the repository's: "+
			"add %[1]s to the file of --temporal-connections, or use --temporal-address", r.HostPort, name)
	}
	if !r.encrypted() && !loopback(r.HostPort) {
		return fmt.Errorf("a Secret goes only over TLS, and the connection to %s has none: turn it on in the bot's "+
			"configuration of the address", r.HostPort)
	}
	return nil
}

// encrypted reports whether the connection uses TLS.
func (a Address) encrypted() bool {
	return a.TLS.Mode == TLSOn || a.TLS.Mode == TLSAuto && a.wantsTLS()
}

// loopback reports whether an address is this machine.
func loopback(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
