package main

import (
	"cmp"
	"errors"
	"os"
	"os/user"
	"path/filepath"

	"github.com/go-git/go-git/v5/config"
	"github.com/spf13/cobra"
)

// addPerson adds the flags that say who speaks.
func (f *repositoryFlags) addPerson(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.author, "author", "", "who says it: author of the commit, and named in the record (default: user.name of git, else the user)")
	cmd.Flags().StringVar(&f.email, "email", "", "e-mail address of the author (default: user.email of git)")
	f.signing.addWriting(cmd)
}

// whoSpeaks fills in the author: the flags, else what git would take, else the user of this machine.
func (a *app) whoSpeaks(f *repositoryFlags) error {
	name, _ := a.variable("GIT_AUTHOR_NAME")
	email, _ := a.variable("GIT_AUTHOR_EMAIL")
	inGit := a.gitUser()
	f.author = cmp.Or(f.author, name, inGit.name)
	f.email = cmp.Or(f.email, email, inGit.email)
	if f.author == "" {
		if u, err := user.Current(); err == nil {
			f.author = cmp.Or(u.Name, u.Username)
		}
	}
	if f.author == "" {
		return errors.New("who says so? name yourself with --author, or RAMPART_AUTHOR")
	}
	if f.email == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "localhost"
		}
		login, _ := a.variable("USER")
		f.email = cmp.Or(login, "rampart") + "@" + host
	}
	return nil
}

type gitUser struct{ name, email string }

// gitUser is the user of git's configuration: of the repository that -C is in, else the person's own. Its fields are
// empty where git has none.
func (a *app) gitUser() gitUser {
	var out gitUser
	if own, err := config.LoadConfig(config.GlobalScope); err == nil {
		out = gitUser{own.User.Name, own.User.Email}
	}
	dir, err := filepath.Abs(a.dir)
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
