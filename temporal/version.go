package temporal

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/metadata"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// versionKeptFor is how long a server's version is believed: servers are upgraded while the bot runs.
const versionKeptFor = 10 * time.Minute

// serverVersion is a version that a server gave, or that it gave none.
type serverVersion struct {
	version string
	at      time.Time
}

// readVersion reads which version of Temporal answers. One call to each address in ten minutes.
func (o *observer) readVersion(ctx context.Context) {
	version, err := o.serverVersion(ctx)
	if err != nil {
		o.log.DebugContext(ctx, "the server's version could not be read", "error", err)
	}
	o.obs.ServerVersion = version
}

// namespaceHeader says which namespace a call is about that does not say so itself: Temporal Cloud routes it by that.
const namespaceHeader = "temporal-namespace"

// serverVersion is the version that the server gives, such as "1.32.0". With an error it is the last one that was read,
// "" for none.
func (s *session) serverVersion(ctx context.Context) (string, error) {
	key, now := s.conn.key, s.pool.cfg.Clock()
	s.pool.mu.Lock()
	known, ok := s.pool.versions[key]
	if ok && young(known.at, now, versionKeptFor) {
		s.pool.mu.Unlock()
		return known.version, nil
	}
	s.pool.versions[key] = serverVersion{known.version, now} // others do not ask meanwhile
	s.pool.mu.Unlock()
	version, err := s.askVersion(ctx)
	if err != nil {
		return known.version, err
	}
	s.pool.mu.Lock()
	s.pool.versions[key] = serverVersion{version, now}
	s.pool.mu.Unlock()
	if version != known.version {
		s.warnOfVersion(ctx, version)
	}
	return version, nil
}

// askVersion asks the server for its version.
func (s *session) askVersion(ctx context.Context) (string, error) {
	ctx = metadata.AppendToOutgoingContext(ctx, namespaceHeader, s.namespace) // which the request does not have
	info, err := read(ctx, reading{s, queues}, s.service().GetSystemInfo, &workflowservice.GetSystemInfoRequest{})
	if err != nil {
		return "", fmt.Errorf("read the server's version: %w", err)
	}
	return info.GetServerVersion(), nil
}

// warnOfVersion logs once what a server lacks.
func (s *session) warnOfVersion(ctx context.Context, version string) {
	var lacks []string
	newest := ""
	for _, f := range rollout.Features() {
		if f.MissingIn(version) {
			lacks, newest = append(lacks, f.Lacks+" (from "+f.Release()+")"), f.Release()
		}
	}
	if len(lacks) == 0 {
		return
	}
	s.pool.cfg.Log.WarnContext(ctx, "Temporal is an older release: it "+strings.Join(lacks, ", it ")+"; upgrade it to "+
		newest+" or later",
		"server", s.conn.address.HostPort, "version", version)
}
