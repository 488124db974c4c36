package operate

import (
	"cmp"
	"errors"
	"os"
	"os/user"
	"path/filepath"

	"github.com/go-git/go-git/v5/config"
	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
)

// addPerson adds the flags that say who speaks.
func addPerson(f *cmdutil.RepositoryFlags, cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Author, "author", "",
		"who says it: author of the commit, and named in the record (default: user.name of git, else the user)")
	cmd.Flags().StringVar(&f.Email, "email", "", "e-mail address of the author (default: user.email of git)")
	f.Signing.AddWriting(cmd)
}

// whoSpeaks fills in the author: the flags, else what git would take, else the user of this machine.
func whoSpeaks(a *cmdutil.App, f *cmdutil.RepositoryFlags) error {
	name, _ := a.LookupEnv("GIT_AUTHOR_NAME")
	email, _ := a.LookupEnv("GIT_AUTHOR_EMAIL")
	inGit := readGitUser(a)
	f.Author = cmp.Or(f.Author, name, inGit.name)
	f.Email = cmp.Or(f.Email, email, inGit.email)
	if f.Author == "" {
		if u, err := user.Current(); err == nil {
			f.Author = cmp.Or(u.Name, u.Username)
		}
	}
	if f.Author == "" {
		return errors.New("--author or RAMPART_AUTHOR is required: the commit records who asked")
	}
	if f.Email == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "localhost"
		}
		login, _ := a.LookupEnv("USER")
		f.Email = cmp.Or(login, "rampart") + "@" + host
	}
	return nil
}

type gitUser struct{ name, email string }

// readGitUser is the user of git's configuration: of the repository that -C is in, else the person's own. Its fields
// are empty where git has none.
func readGitUser(a *cmdutil.App) gitUser {
	var out gitUser
	if own, err := config.LoadConfig(config.GlobalScope); err == nil {
		out = gitUser{own.User.Name, own.User.Email}
	}
	dir, err := filepath.Abs(a.Dir)
	if err != nil {
		return out
	}
	for last := ""; dir != last; last, dir = dir, filepath.Dir(dir) {
		f, err := os.Open(filepath.Join(dir, ".git", "config"))
		if err != nil {
			continue
		}
		local, err := config.ReadConfig(f)
		if closeErr := f.Close(); err == nil && closeErr == nil {
			out = gitUser{cmp.Or(local.User.Name, out.name), cmp.Or(local.User.Email, out.email)}
		}
		break
	}
	return out
}
