package gitlab

import (
	"testing"

	"github.com/stretchr/testify/require"
	gl "gitlab.com/gitlab-org/api/client-go/v2"
)

// GitLab tells no role of an administrator, who needs none.
func TestRoleOf(t *testing.T) {
	developer := &gl.ProjectAccess{AccessLevel: gl.DeveloperPermissions}
	owner := &gl.GroupAccess{AccessLevel: gl.OwnerPermissions}
	for want, permissions := range map[gl.AccessLevelValue]*gl.Permissions{
		gl.DeveloperPermissions: {ProjectAccess: developer},
		gl.OwnerPermissions:     {ProjectAccess: developer, GroupAccess: owner},
	} {
		role, told := roleOf(&gl.Project{Permissions: permissions})
		require.True(t, told)
		require.Equal(t, want, role)
	}
	for _, p := range []*gl.Project{{}, {Permissions: &gl.Permissions{}}} {
		_, told := roleOf(p)
		require.False(t, told)
	}
}
