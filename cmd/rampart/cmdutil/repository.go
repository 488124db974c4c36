package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/git"
)

// RepositoryFlags say where the repository is and how to log in.
type RepositoryFlags struct {
	URL, Branch, CacheDir             string
	branchGiven                       func() bool
	user, TokenFile, CAFile           string
	keyFile, passphraseFile, hostKeys string
	Proxy                             string
	silence                           time.Duration
	// offline says that a clone is read without a fetch; decisionRef is what a fetch brings beside branches, "" for
	// nothing.
	offline       bool
	DecisionRef   string
	githubApp     githubAppFlags
	Author, Email string
	Signing       SigningFlags
}

// The variables of secrets for Git, which are no flags: a flag is seen by everybody who may list processes.
const (
	GitTokenVariable      = "RAMPART_GIT_TOKEN"
	variableKeyPassphrase = "RAMPART_GIT_SSH_PASSPHRASE"
)

// AddReading adds the flags of a command that reads a repository.
func (f *RepositoryFlags) AddReading(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.URL, "repo", "", "repository: https://, ssh://, user@host:path, file:///path")
	fs.StringVar(&f.Branch, "branch", "main", "branch that the specs are on")
	f.branchGiven = func() bool { return fs.Changed("branch") }
	fs.StringVar(&f.CacheDir, "cache-dir", "",
		"folder of mirrors, safe to delete (default: rampart in the user's cache folder)")
	fs.StringVar(&f.user, "git-user", "", "user name that goes with the token")
	fs.StringVar(&f.TokenFile, "git-token-file", "",
		"file with a token or password for HTTPS (or "+GitTokenVariable+")")
	fs.StringVar(&f.CAFile, "git-ca-file", "", "PEM file of authorities to trust for HTTPS beside the system's")
	fs.StringVar(&f.keyFile, "git-ssh-key-file", "", "private key for SSH")
	fs.StringVar(&f.passphraseFile, "git-ssh-passphrase-file", "",
		"file with the key's passphrase (or "+variableKeyPassphrase+")")
	fs.StringVar(&f.hostKeys, "git-known-hosts", "", "known_hosts file for SSH (default: the user's)")
	fs.StringVar(&f.Proxy, "git-proxy", "", "proxy for HTTPS and SSH, as URL (default: those of HTTPS_PROXY, "+
		"HTTP_PROXY and ALL_PROXY); NO_PROXY counts in either case")
	fs.DurationVar(&f.silence, "git-timeout", git.DefaultSilence,
		"how long the Git server may be silent before it is given up")
	f.githubApp.add(cmd)
	f.Signing.addReading(cmd)
}

// AddPublished adds the flags of a command that reads a repository, or a clone as its remote has it.
func (f *RepositoryFlags) AddPublished(cmd *cobra.Command) {
	f.AddReading(cmd)
	cmd.Flags().BoolVar(&f.offline, "offline", false, "read a clone as it is, without fetching from its remote first")
	cmd.MarkFlagsMutuallyExclusive("offline", "repo")
}

// AddWriting adds the flags of a command that commits.
func (f *RepositoryFlags) AddWriting(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Author, "author", "rampart", "author of commits")
	cmd.Flags().StringVar(&f.Email, "email", "rampart@localhost", "e-mail address of commits' author")
	f.Signing.AddWriting(cmd)
}

// credentials gives the credentials of the bot's own configuration.
func credentials(a *App, f RepositoryFlags) (auth git.Auth, err error) {
	auth = git.Auth{User: f.user, CAFile: f.CAFile, KnownHosts: f.hostKeys}
	if auth.Proxy, err = a.ProxyFunc(f.Proxy); err != nil {
		return auth, err
	}
	auth.Password = a.Secret(f.TokenFile, GitTokenVariable)
	auth.SSHPassphrase = a.Secret(f.passphraseFile, variableKeyPassphrase)
	if f.keyFile != "" {
		auth.SSHKey = git.SecretFile(f.keyFile)
	}
	if auth.KnownHosts == "" {
		if home, err := os.UserHomeDir(); err == nil {
			if file := filepath.Join(home, ".ssh", "known_hosts"); IsFile(file) {
				auth.KnownHosts = file
			}
		}
	}
	return auth, logIn(a, f, &auth)
}

// Secret gives the secret of a file, else that of a variable, else nil.
func (a *App) Secret(file, variable string) git.Secret {
	if file != "" {
		return git.SecretFile(file)
	}
	if v, ok := a.LookupEnv(variable); ok && v != "" {
		return git.SecretValue(v)
	}
	return nil
}

// CacheDir gives the folder of --cache-dir, else the user's. A symbolic link in it is an error: Rampart makes none, and
// would write to where it leads.
func CacheDir(flag string) (string, error) {
	dir := flag
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no place for what is downloaded, give one with --cache-dir: %w", err)
		}
		dir = filepath.Join(user, "rampart")
	}
	full, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("--cache-dir %s: %w", dir, err)
	}
	return full, refuseLinks(full)
}

// refuseLinks fails if there is a symbolic link in a folder, at any depth. The folder itself may be one: the person who
// runs Rampart named it.
func refuseLinks(dir string) error {
	root, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for symbolic links in the cache folder: %w", err)
	}
	return filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // another process removed it
			return nil
		case err != nil:
			return fmt.Errorf("look for symbolic links in the cache folder: %w", err)
		case e.Type()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s is a symbolic link, and Rampart makes none in its cache folder %s: remove it, or "+
				"give another folder with --cache-dir", name, dir)
		}
		return nil
	})
}

// OpenRepository opens the mirror of --repo. A mirror that another process uses is a *git.LockedError.
func (a *App) OpenRepository(f RepositoryFlags) (*gitops.Repository, error) {
	dir, err := CacheDir(f.CacheDir)
	if err != nil {
		return nil, err
	}
	auth, err := credentials(a, f)
	if err != nil {
		return nil, err
	}
	if f.silence <= 0 {
		return nil, fmt.Errorf("--git-timeout has to be positive, not %s", f.silence)
	}
	cfg := gitops.Config{URL: f.URL, Branch: f.Branch, CacheDir: dir, Auth: auth, Silence: f.silence, Author: f.Author,
		Email: f.Email, Options: a.ReadOptions(), Log: a.Log, Now: a.Now, OnWrite: a.Hooks.Push}
	if err := ConfigureSigning(context.Background(), a, f.Signing, &cfg); err != nil {
		return nil, err
	}
	return gitops.Open(cfg)
}

// OpenShortLived opens --repo for one command, with a temporary mirror where the bot uses the other one. close releases
// it, and removes the temporary one.
func (a *App) OpenShortLived(f RepositoryFlags) (*gitops.Repository, func() error, error) {
	return shortLived(f, a.OpenRepository)
}

// shortLived opens a mirror for one command, a temporary one where the bot uses the other one.
func shortLived[T io.Closer](f RepositoryFlags, open func(RepositoryFlags) (T, error)) (
	opened T, closeAll func() error, err error) {
	opened, err = open(f)
	var locked *git.LockedError
	if !errors.As(err, &locked) {
		if err != nil {
			return opened, nil, err
		}
		return opened, opened.Close, nil
	}
	dir, err := os.MkdirTemp("", "rampart-mirror-")
	if err != nil {
		return opened, nil, errors.Join(locked, err)
	}
	f.CacheDir = dir
	if opened, err = open(f); err != nil {
		return opened, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return opened, func() error { return errors.Join(opened.Close(), os.RemoveAll(dir)) }, nil
}
