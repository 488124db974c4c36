package cmdutil

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/signature"
)

const variableSigningPassphrase = "RAMPART_SIGNING_PASSPHRASE"

// SigningFlags say which signers of commits are trusted, and how the bot's commits are signed and marked.
type SigningFlags struct {
	signers             []string
	Key, passphraseFile string
	skipCI              bool
}

// addReading adds the flags of a command that reads commits.
func (f *SigningFlags) addReading(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.signers, "allowed-signers", nil,
		"file with who is trusted to sign commits, for policies that look at input.git.signed: allowed_signers of "+
			"ssh-keygen, or OpenPGP public keys; repeatable")
}

// AddWriting adds the flags of a command that commits.
func (f *SigningFlags) AddWriting(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.Key, "signing-key", "",
		"file with the private key that commits are signed with: of SSH, or of OpenPGP in ASCII armour")
	fs.StringVar(&f.passphraseFile, "signing-passphrase-file", "",
		"file with the signing key's passphrase (or "+variableSigningPassphrase+")")
	fs.BoolVar(&f.skipCI, "skip-ci", false, "mark commits with [skip ci], so that they start no CI")
}

// ConfigureSigning sets the trusted signers, the signing key and the [skip ci] mark of a repository.
func ConfigureSigning(ctx context.Context, a *App, f SigningFlags, cfg *gitops.Config) (err error) {
	cfg.SkipCI = f.skipCI
	if len(f.signers) > 0 {
		if cfg.Signers, err = signature.Load(f.signers...); err != nil {
			return fmt.Errorf("--allowed-signers: %w", err)
		}
	}
	if f.Key == "" {
		if f.passphraseFile != "" {
			return errors.New("there is --signing-passphrase-file, and no --signing-key")
		}
		return nil
	}
	passphrase := ""
	if secret := a.Secret(f.passphraseFile, variableSigningPassphrase); secret != nil {
		if passphrase, err = secret(ctx); err != nil {
			return fmt.Errorf("read the passphrase of the signing key: %w", err)
		}
	}
	cfg.SigningKey, err = signature.LoadKey(f.Key, passphrase)
	if errors.Is(err, signature.ErrPassphraseNeeded) {
		return fmt.Errorf("%w: give it in --signing-passphrase-file, or %s", err, variableSigningPassphrase)
	}
	return err
}
