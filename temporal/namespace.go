package temporal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// namespaceKeptFor is how long an answer about a namespace is used again: many worker deployments share one.
const namespaceKeptFor = time.Minute

// namespaceID is what was read of a namespace.
type namespaceID struct {
	id  string
	err error
	at  time.Time
}

// NamespaceAt gives the ID of a Temporal namespace at a connection's own address, whatever address the bot's
// configuration has for the connection by its name. Credentials go there only if the configuration has them for just
// that address.
func (p *Pool) NamespaceAt(ctx context.Context, conn v1alpha1.Connection,
	temporalNamespace string) rollout.NamespaceThere {
	out := rollout.NamespaceThere{HostPort: conn.Spec.HostPort, TemporalNamespace: temporalNamespace}
	s, err := p.sessionAt(p.cfg.resolveThere(conn), temporalNamespace)
	if err == nil {
		out.ID, err = s.namespaceID(ctx)
	}
	if err != nil {
		p.cfg.Log.WarnContext(ctx, "namespace not read", "temporalNamespace", temporalNamespace, "address",
			conn.Spec.HostPort, "error", err)
		out.Problem = p.problem(fmt.Sprintf("describe Temporal namespace %s at %s", temporalNamespace,
			conn.Spec.HostPort), err).Message
	}
	return out
}

// readNamespace reads the ID of the namespace, if it was asked for.
func (o *observer) readNamespace(ctx context.Context) {
	if !o.ask.NamespaceID {
		return
	}
	id, err := o.namespaceID(ctx)
	if err != nil {
		o.log.DebugContext(ctx, "the namespace's ID could not be read", "error", err)
		return
	}
	o.obs.NamespaceID = id
}

// namespaceID is the ID that the server has for the namespace.
func (s *session) namespaceID(ctx context.Context) (string, error) {
	key, now := s.conn.key+"\x00"+s.namespace, s.pool.cfg.Clock()
	s.pool.mu.Lock()
	known, ok := s.pool.namespaces[key]
	s.pool.mu.Unlock()
	if ok && young(known.at, now, namespaceKeptFor) {
		return known.id, known.err
	}
	resp, err := read(ctx, reading{s, describing}, s.service().DescribeNamespace,
		&workflowservice.DescribeNamespaceRequest{Namespace: s.namespace})
	id := resp.GetNamespaceInfo().GetId()
	if err == nil && id == "" {
		err = errors.New("describe namespace: the answer has no ID")
	}
	if ctx.Err() == nil {
		s.pool.mu.Lock()
		s.pool.namespaces[key] = namespaceID{id, err, now}
		s.pool.mu.Unlock()
	}
	return id, err
}
