package forge

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLocateFindsTheForgeOfAClone(t *testing.T) {
	github := Repository{KindGitHub, "https://github.com", "acme", "workers"}
	gitlab := Repository{KindGitLab, "https://gitlab.com", "acme", "workers"}
	deep := Repository{KindGitLab, "https://gitlab.com", "acme/platform/payments", "workers"}
	gitea := Repository{KindGitea, "https://git.example.com", "acme", "workers"}
	ported := Repository{KindGitea, "https://git.example.com:8443", "acme", "workers"}
	below := Repository{KindGitea, "https://example.com/some/git", "acme", "workers"}
	for name, c := range map[string]struct {
		at   Location
		want Repository
	}{
		"https":                 {Location{Clone: "https://github.com/acme/workers.git"}, github},
		"no .git":               {Location{Clone: "https://github.com/acme/workers/"}, github},
		"upper case":            {Location{Clone: "HTTPS://GitHub.com/acme/workers.git"}, github},
		"credentials":           {Location{Clone: "https://bot:s3cret@github.com/acme/workers.git"}, github},
		"scp-like":              {Location{Clone: "git@github.com:acme/workers.git"}, github},
		"ssh":                   {Location{Clone: "ssh://git@github.com/acme/workers.git"}, github},
		"ssh on port 443":       {Location{Clone: "ssh://git@ssh.github.com:443/acme/workers.git"}, github},
		"gitlab's 443":          {Location{Clone: "ssh://git@altssh.gitlab.com:443/acme/workers.git"}, gitlab},
		"subgroups":             {Location{Clone: "https://gitlab.com/acme/platform/payments/workers.git"}, deep},
		"subgroups by ssh":      {Location{Clone: "git@gitlab.com:acme/platform/payments/workers.git"}, deep},
		"enterprise":            {Location{Clone: "https://ghe.example.com/acme/workers", Kind: KindGitHub}, Repository{KindGitHub, "https://ghe.example.com", "acme", "workers"}},
		"enterprise cloud":      {Location{Clone: "https://acme.ghe.com/acme/workers"}, Repository{KindGitHub, "https://acme.ghe.com", "acme", "workers"}},
		"port":                  {Location{Clone: "https://git.example.com:8443/acme/workers.git", Kind: KindGitea}, ported},
		"the port of ssh":       {Location{Clone: "ssh://git@git.example.com:2222/acme/workers.git", Kind: KindGitea}, gitea},
		"both ports":            {Location{Clone: "ssh://git@git.example.com:2222/acme/workers.git", Kind: KindGitea, Base: "https://git.example.com:8443/"}, ported},
		"other host":            {Location{Clone: "git@ssh.example.com:acme/workers.git", Kind: KindGitea, Base: "https://git.example.com"}, gitea},
		"below a path":          {Location{Clone: "https://example.com/some/git/acme/workers.git", Kind: KindGitea}, below},
		"said to be below":      {Location{Clone: "https://example.com/some/git/acme/workers.git", Kind: KindGitea, Base: "https://example.com/some/git"}, below},
		"below, by ssh":         {Location{Clone: "git@example.com:acme/workers.git", Kind: KindGitea, Base: "https://example.com/some/git"}, below},
		"gitlab below a path":   {Location{Clone: "https://example.com/lab/a/b/c.git", Kind: KindGitLab, Base: "https://example.com/lab"}, Repository{KindGitLab, "https://example.com/lab", "a/b", "c"}},
		"ssh at another name":   {Location{Clone: "git@somewhere:acme/workers.git", Base: "https://github.com"}, github},
		"loopback":              {Location{Clone: "http://127.0.0.1:3000/acme/workers", Kind: KindGitea}, Repository{KindGitea, "http://127.0.0.1:3000", "acme", "workers"}},
		"IPv6":                  {Location{Clone: "ssh://git@[::1]:2222/acme/workers.git", Kind: KindGitea}, Repository{KindGitea, "https://[::1]", "acme", "workers"}},
		"scp-like IPv6":         {Location{Clone: "git@[::1]:acme/workers.git", Kind: KindGitea}, Repository{KindGitea, "https://[::1]", "acme", "workers"}},
		"dots, and .git within": {Location{Clone: "git@github.com:a.b/c.github.io.git"}, Repository{KindGitHub, "https://github.com", "a.b", "c.github.io"}},
		"file":                  {Location{Clone: "file:///srv/workers.git"}, Repository{Kind: KindNone, Base: "file:///srv/workers.git"}},
		"path":                  {Location{Clone: "/srv/workers.git"}, Repository{Kind: KindNone, Base: "file:///srv/workers.git"}},
		"none, wherever":        {Location{Clone: "https://github.com/acme/workers.git", Kind: KindNone}, Repository{Kind: KindNone, Base: "https://github.com/acme/workers.git"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Locate(c.at)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestLocateRefuses(t *testing.T) {
	for clone, want := range map[Location]string{
		{Clone: "https://git.example.com/acme/workers"}:                                     "which forge is at this host is not known",
		{Clone: "https://github.com.example.com/acme/workers"}:                              "which forge is at this host is not known",
		{Clone: "https://x/acme/workers", Kind: "bitbucket"}:                                `there is no forge "bitbucket"`,
		{Clone: "/srv/workers.git", Kind: KindGitea}:                                        "no forge is known by a path",
		{Clone: "https://github.com/workers"}:                                               "not owner/name",
		{Clone: "git@github.com:a/b/c"}:                                                     "not owner/name",
		{Clone: "https://github.com/../workers"}:                                            "no owner and no repository",
		{Clone: "https://gitlab.com/a/%2e%2e/c"}:                                            "no owner and no repository",
		{Clone: "https://github.com/a%2Fb/workers%3Fx"}:                                     "not owner/name",
		{Clone: "https://github.com/a/b%3Fx"}:                                               "no owner and no repository",
		{Clone: "git@github.com:a//b"}:                                                      "not owner/name",
		{Clone: "https://github.com/a/b?x=y"}:                                               "not a clone URL",
		{Clone: "https://x:s3cret@git.example.com/a/b\x7f"}:                                 "it is not a URL",
		{Clone: "https://git.example.com/a/b", Kind: KindGitea, Base: "git.example.com"}:    "the forge's address cannot be used",
		{Clone: "https://git.example.com/a/b", Kind: KindGitea, Base: "https://u:s3cret@x"}: "the forge's address cannot be used",
		{Clone: "ftp://x:s3cret@git.example.com/a/b", Kind: KindGitea}:                      "no forge is reached by its scheme",
		{Clone: "workers"}: "it is not a URL",
		{}:                 "it is not a URL",
	} {
		_, err := Locate(clone)
		var bad *AddressError
		require.ErrorAs(t, err, &bad, clone.Clone)
		require.ErrorContains(t, err, want, clone.Clone)
		require.NotContains(t, err.Error(), "s3cret")
	}
}

func TestAPI(t *testing.T) {
	for want, r := range map[string]Repository{
		"https://api.github.com":           {Kind: KindGitHub, Base: "https://github.com"},
		"https://api.acme.ghe.com":         {Kind: KindGitHub, Base: "https://acme.ghe.com"},
		"https://ghe.example.com/api/v3":   {Kind: KindGitHub, Base: "https://ghe.example.com"},
		"https://gitlab.com/api/v4":        {Kind: KindGitLab, Base: "https://gitlab.com"},
		"https://example.com/lab/api/v4":   {Kind: KindGitLab, Base: "https://example.com/lab"},
		"https://git.example.com:1/api/v1": {Kind: KindGitea, Base: "https://git.example.com:1"},
	} {
		require.Equal(t, want, r.API())
	}
}

func TestFolderHasAnAddressOnEachForge(t *testing.T) {
	for want, r := range map[string]Repository{
		"https://github.com/acme/workers/tree/deploy/prod/deploy/shop/a%20b":   {KindGitHub, "https://github.com", "acme", "workers"},
		"https://gitlab.com/a/b/workers/-/tree/deploy/prod/deploy/shop/a%20b":  {KindGitLab, "https://gitlab.com", "a/b", "workers"},
		"https://git.example.com/a/w/src/branch/deploy/prod/deploy/shop/a%20b": {KindGitea, "https://git.example.com", "a", "w"},
		"": {Kind: KindNone, Base: "file:///srv/workers.git"},
	} {
		require.Equal(t, want, r.Folder("deploy/prod", "deploy/shop/a b"))
	}
}

// What is located names a host that was named, and no path that leads elsewhere; no credential is told.
func FuzzLocate(f *testing.F) {
	for _, clone := range []string{"https://u:p@github.com/a/b.git", "git@host:a/b", "ssh://git@[::1]:22/a/b", "/a/b", "https://gitlab.com/a/b/c", "x@[", "]:", "a:b"} {
		f.Add(clone, "gitea", "https://base/x")
		f.Add(clone, "", "")
	}
	f.Fuzz(func(t *testing.T, clone, kind, base string) {
		r, err := Locate(Location{Clone: clone, Kind: Kind(kind), Base: base})
		if err != nil || r.Kind == KindNone {
			return
		}
		require.Regexp(t, `^https?://[^/@?#]+(/[^?#]*)?$`, r.Base)
		require.Regexp(t, `^[\pL\pN_.+~-]+(/[\pL\pN_.+~-]+)*$`, r.Owner)
		require.True(t, isName(r.Name))
		require.NotContains(t, r.URL(), "/../")
	})
}
