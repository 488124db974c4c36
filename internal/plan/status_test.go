package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// TestStatusNamesItsSpec: a change of the spec that changes nothing else is one commit. After it, the object in the
// cluster says which spec its status is about. A spec that cannot be read leaves that as it is.
func TestStatusNamesItsSpec(t *testing.T) {
	w := newWorld(t)
	w.startV1()
	said := func() string { return w.record().Status.Metadata.Annotations[rollout.AnnotationSpecDigest] }
	before := w.given.Spec.Digest()
	require.Equal(t, before, said())

	w.spec().Sunset.DeleteDelay = lasting(3 * time.Hour)
	now := w.given.Spec.Digest()
	require.NotEqual(t, before, now)
	w.run(time.Minute)
	require.Len(t, w.commits, 1)
	require.Equal(t, now, said())
	w.quiet(20, time.Hour)

	w.spoils("invalid")
	w.run(time.Minute)
	require.Equal(t, "InvalidSpec", w.reason())
	require.Equal(t, now, said())
}
