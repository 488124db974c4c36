package signature_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/signature"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// clone is a repository on disk, in which git signs.
type clone struct {
	t    *testing.T
	dir  string
	home string
}

func newClone(t *testing.T) *clone {
	d := &clone{t: t, dir: t.TempDir(), home: t.TempDir()}
	require.NoError(t, os.Chmod(d.home, 0o700))
	d.run("git", "init", "-q", "-b", "main")
	d.run("git", "config", "user.name", "Ada")
	d.run("git", "config", "user.email", "ada@example.com")
	return d
}

func (d *clone) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = d.dir
	cmd.Env = append(gittest.Env(), "GNUPGHOME="+d.home, "HOME="+d.home)
	return cmd
}

func (d *clone) run(name string, args ...string) []byte {
	d.t.Helper()
	cmd := d.command(name, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(d.t, err, "%s %s: %s", name, strings.Join(args, " "), errs.String())
	return out
}

// commit makes a commit, and gives it as git stores it.
func (d *clone) commit(args ...string) []byte {
	d.t.Helper()
	d.run("git", append([]string{"commit", "-q", "--allow-empty", "-m", "checkout 3\n\nwith a body"}, args...)...)
	return d.run("git", "cat-file", "commit", "HEAD")
}

// sshKey makes a key that git signs with from now on, and gives its public half.
func (d *clone) sshKey(kind string) string {
	d.t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		testneed.Missing(d.t, "ssh-keygen is needed to sign: install openssh-client")
	}
	file := filepath.Join(d.home, "key-"+kind+time.Now().Format("150405.000000000"))
	d.run("ssh-keygen", "-q", "-t", kind, "-N", "", "-f", file, "-C", "a comment")
	d.run("git", "config", "gpg.format", "ssh")
	d.run("git", "config", "user.signingkey", file+".pub")
	public, err := os.ReadFile(file + ".pub")
	require.NoError(d.t, err)
	return strings.TrimSpace(string(public))
}

// gpgKey makes a key that git signs with from now on, and gives its public half.
func (d *clone) gpgKey(who, expires, passphrase string) []byte {
	d.t.Helper()
	if _, err := exec.LookPath("gpg"); err != nil {
		testneed.Missing(d.t, "gpg is needed to sign: install gnupg")
	}
	d.t.Cleanup(func() { _ = d.command("gpgconf", "--kill", "gpg-agent").Run() })
	d.run("gpg", "--batch", "-q", "--pinentry-mode", "loopback", "--passphrase", passphrase, "--quick-generate-key", who, "ed25519", "sign", expires)
	d.run("git", "config", "gpg.format", "openpgp")
	d.run("git", "config", "user.signingkey", who)
	return d.run("gpg", "--batch", "--armor", "--export", who)
}

func file(t *testing.T, content string) string {
	name := filepath.Join(t.TempDir(), "signers")
	require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	return name
}

func load(t *testing.T, contents ...string) *signature.Signers {
	t.Helper()
	var files []string
	for _, c := range contents {
		files = append(files, file(t, c))
	}
	s, err := signature.Load(files...)
	require.NoError(t, err)
	return s
}

// Of a commit signed with an SSH key, this package says what git says. That holds for each kind of key and each
// line of allowed signers.
func TestSSH(t *testing.T) {
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		t.Run(kind, func(t *testing.T) {
			d := newClone(t)
			key := d.sshKey(kind)
			other := newClone(t).sshKey("ed25519")
			commit := d.commit("-S")
			for line, trusted := range map[string]bool{
				"ada@example.com " + key:                                                   true,
				`ada@example.com namespaces="git" ` + key:                                  true,
				`ada@example.com namespaces="file,g*" ` + key:                              true,
				`"ada@example.com,ops@example.com" valid-after="20200101Z" ` + key:         true,
				`ada@example.com valid-before="29990101" ` + key:                           true,
				"# nobody\nbob@example.com " + other + "\n\nada@example.com " + key + "\n": true,
				"ada@example.com " + other:                                                 false,
				`ada@example.com namespaces="file" ` + key + "\nb@example.com " + other:    false,
				`ada@example.com namespaces="*,!git" ` + key + "\nb@example.com " + other:  false,
				`ada@example.com valid-after="29990101Z" ` + key:                           false,
				`ada@example.com valid-before="202001011200" ` + key:                       false,
			} {
				d.run("git", "config", "gpg.ssh.allowedSignersFile", file(t, line+"\n"))
				byGit := d.command("git", "verify-commit", "HEAD").Run() == nil
				require.Equal(t, trusted, byGit, "git of %s", line)
				who, err := load(t, line+"\n").Verify(commit)
				if !trusted {
					require.ErrorIs(t, err, signature.ErrUntrusted, line)
					require.Empty(t, who)
					continue
				}
				require.NoError(t, err, line)
				require.Contains(t, who, "ada@example.com")
			}
		})
	}
}

func TestOpenPGP(t *testing.T) {
	d := newClone(t)
	stranger := d.gpgKey("Eve <eve@example.com>", "never", "")
	short := d.gpgKey("Old <old@example.com>", "seconds=1", "")
	expired := d.commit("-S")
	key := d.gpgKey("Ada <ada@example.com>", "never", "")
	commit := d.commit("-S")
	d.run("git", "verify-commit", "HEAD")

	who, err := load(t, string(key)).Verify(commit)
	require.NoError(t, err)
	require.Equal(t, "Ada <ada@example.com>", who)
	who, err = load(t, string(stranger), "# both\n"+string(stranger)+string(key)).Verify(commit)
	require.NoError(t, err)
	require.Equal(t, "Ada <ada@example.com>", who)
	_, err = load(t, string(stranger)).Verify(commit)
	require.ErrorIs(t, err, signature.ErrUntrusted)
	require.Eventually(t, func() bool { return d.command("git", "verify-commit", "HEAD~1").Run() != nil }, 10*time.Second, 50*time.Millisecond,
		"git says that the key is over")
	_, err = load(t, string(short)).Verify(expired)
	require.ErrorIs(t, err, signature.ErrUntrusted)
	require.ErrorContains(t, err, "expired")
}

// A signature is of one commit, as it is.
func TestNotAsItWasSigned(t *testing.T) {
	d := newClone(t)
	s := load(t, "ada@example.com "+d.sshKey("ed25519")+"\n")
	plain := d.commit()
	_, err := s.Verify(plain)
	require.ErrorIs(t, err, signature.ErrUnsigned)
	commit := d.commit("-S")
	_, err = s.Verify(commit)
	require.NoError(t, err)

	head, message, _ := bytes.Cut(commit, []byte("\n\n"))
	at := bytes.Index(head, []byte("gpgsig "))
	signed := head[at:]
	for name, bad := range map[string][]byte{
		"another message":     bytes.Replace(commit, []byte("checkout 3"), []byte("checkout 4"), 1),
		"another author":      bytes.Replace(commit, []byte("author A "), []byte("author E "), 1),
		"another parent":      bytes.Replace(commit, []byte("parent "), []byte("parent 1"), 1),
		"another header":      bytes.Replace(commit, []byte("gpgsig "), []byte("encoding x\ngpgsig "), 1),
		"the end is cut":      commit[:len(commit)-1],
		"two signatures":      fmt.Appendf(nil, "%s\n%s\n\n%s", head, signed, message),
		"a broken one":        bytes.Replace(commit, []byte("\n -----END"), []byte("\n AAAA\n -----END"), 1),
		"some other text":     fmt.Appendf(nil, "%sgpgsig hello\n\n%s", head[:at], message),
		"nothing but a token": fmt.Appendf(nil, "%sgpgsig -----BEGIN SSH SIGNATURE-----\n\n%s", head[:at], message),
		"without a committer": bytes.Replace(commit, []byte("\ncommitter "), []byte("\ncommitted "), 1),
	} {
		who, err := s.Verify(bad)
		require.ErrorIs(t, err, signature.ErrUntrusted, name)
		require.Empty(t, who, name)
	}
	_, err = s.Verify([]byte("gpgsig"))
	require.ErrorIs(t, err, signature.ErrUnsigned)
	_, err = s.Verify(nil)
	require.ErrorIs(t, err, signature.ErrUnsigned)

	both := fmt.Appendf(nil, "%s\ngpgsig-sha256 %s\n\n%s", head, "-----BEGIN SSH SIGNATURE-----\n AAAA\n -----END SSH SIGNATURE-----", message)
	_, err = s.Verify(both)
	require.NoError(t, err, "a signature of the name by another hash is not part of what is signed")
}

// The header of a merged tag has lines that look like a signature's, which belong to what is signed.
func TestMergedTag(t *testing.T) {
	d := newClone(t)
	s := load(t, "ada@example.com "+d.sshKey("ed25519")+"\n")
	d.commit()
	d.run("git", "checkout", "-q", "-b", "side")
	d.commit("-m", "on the side")
	d.run("git", "tag", "-s", "-m", "a tag", "v1")
	d.run("git", "checkout", "-q", "main")
	d.commit("-m", "on main")
	d.run("git", "merge", "-q", "--no-ff", "-S", "-m", "merge", "v1")
	commit := d.run("git", "cat-file", "commit", "HEAD")
	require.Contains(t, string(commit), "\nmergetag ")
	who, err := s.Verify(commit)
	require.NoError(t, err)
	require.Equal(t, "ada@example.com", who)
}

func TestLoadRefuses(t *testing.T) {
	d := newClone(t)
	key := d.sshKey("ed25519")
	for content, want := range map[string]string{
		"":              "it has no signers",
		"# nothing\n\n": "it has no signers",
		"ada@example.com namespaces=\"file\" " + key:        "it has no signers",
		"# first\nada@example.com\n":                        "line 2: expected principals, a key type and a key",
		"ada@example.com ssh-ed25519 AAAA\n":                "line 1: read the key of ada@example.com",
		"ada@example.com valid-before=\"soon\" " + key:      `line 1: time "soon": expected YYYYMMDD`,
		"*@example.com cert-authority " + key:               `line 1: option "cert-authority" of *@example.com is not known`,
		"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n":    "read OpenPGP public keys",
		"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nAAAA\n\n": "read OpenPGP public keys",
	} {
		name := file(t, content)
		_, err := signature.Load(name)
		require.ErrorContains(t, err, want, content)
		require.ErrorContains(t, err, name)
	}
	_, err := signature.Load(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// FuzzVerify verifies any text as a commit: Verify never panics, and finds no signer.
func FuzzVerify(f *testing.F) {
	f.Add([]byte("tree 1\nparent 2\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\ngpgsig -----BEGIN SSH SIGNATURE-----\n U1NIU0lH\n -----END SSH SIGNATURE-----\n\nx\n"))
	f.Add([]byte("tree 1\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n =aaaa\n -----END PGP SIGNATURE-----\n\nx\n"))
	signers, err := signature.Load(filepath.Join("testdata", "signers"))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, commit []byte) {
		if who, err := signers.Verify(commit); err == nil || who != "" {
			t.Fatalf("signed by %q", who)
		}
	})
}

// What is signed here is what git verifies, with each kind of key, encrypted or not.
func TestGitVerifiesSignaturesOfEachKindOfKey(t *testing.T) {
	const passphrase = "correct horse"
	for _, kind := range []string{"ed25519", "ecdsa", "rsa", "ed25519 encrypted", "openpgp", "openpgp encrypted"} {
		t.Run(kind, func(t *testing.T) {
			d := newClone(t)
			phrase := ""
			if strings.HasSuffix(kind, " encrypted") {
				phrase = passphrase
			}
			private, public := d.privateKey(strings.TrimSuffix(kind, " encrypted"), phrase)
			if phrase != "" {
				_, err := signature.LoadKey(private, "")
				require.ErrorIs(t, err, signature.ErrPassphraseNeeded)
				require.ErrorContains(t, err, private)
				_, err = signature.LoadKey(private, "wrong")
				require.ErrorIs(t, err, signature.ErrWrongPassphrase)
			}
			key, err := signature.LoadKey(private, phrase)
			require.NoError(t, err)

			commit := d.commit()
			armored, err := key.Sign(commit)
			require.NoError(t, err)
			head, message, _ := bytes.Cut(commit, []byte("\n\n"))
			signed := fmt.Appendf(nil, "%s\ngpgsig %s\n\n%s", head, strings.ReplaceAll(strings.TrimSuffix(string(armored), "\n"), "\n", "\n "), message)
			require.NoError(t, os.WriteFile(filepath.Join(d.dir, "object"), signed, 0o600))
			hash := strings.TrimSpace(string(d.run("git", "hash-object", "-t", "commit", "-w", "object")))
			d.run("git", "fsck", "--strict", hash)
			d.run("git", "config", "gpg.ssh.allowedSignersFile", file(t, public))
			d.run("git", "verify-commit", hash)
			who, err := load(t, public).Verify(signed)
			require.NoError(t, err)
			require.Contains(t, who, "ada@example.com")
		})
	}
}

// privateKey makes a key, and gives its file and a list of signers with its public half.
func (d *clone) privateKey(kind, passphrase string) (private, signers string) {
	d.t.Helper()
	if kind != "openpgp" {
		public := d.sshKey(kind)
		private = strings.TrimSuffix(strings.TrimSpace(string(d.run("git", "config", "user.signingkey"))), ".pub")
		if passphrase != "" {
			d.run("ssh-keygen", "-q", "-p", "-P", "", "-N", passphrase, "-f", private)
		}
		return private, "ada@example.com " + public + "\n"
	}
	const who = "Ada <ada@example.com>"
	signers = string(d.gpgKey(who, "never", passphrase))
	return file(d.t, string(d.run("gpg", "--batch", "--armor", "--pinentry-mode", "loopback", "--passphrase", passphrase, "--export-secret-keys", who))), signers
}

func TestLoadKeyRefuses(t *testing.T) {
	d := newClone(t)
	public := d.gpgKey("Ada <ada@example.com>", "never", "")
	for content, want := range map[string]string{
		"":             "expected a private key of SSH, or of OpenPGP in ASCII armour",
		"hello":        "expected a private key of SSH, or of OpenPGP in ASCII armour",
		string(public): "expected one private OpenPGP key",
		"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nAAAA\n": "read OpenPGP key",
	} {
		name := file(t, content)
		_, err := signature.LoadKey(name, "")
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "signing key "+name)
	}
	_, err := signature.LoadKey(filepath.Join(t.TempDir(), "none"), "")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Lists of signers come from the bot's own files. A mistake in one is an error, and never makes an unsigned commit
// a trusted one.
func FuzzSigners(f *testing.F) {
	data, err := os.ReadFile(filepath.Join("testdata", "signers"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("* namespaces=\"git\",valid-after=\"20260101\" ssh-ed25519 AAAA\n"))
	f.Add([]byte("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nxjME\n=aaaa\n-----END PGP PUBLIC KEY BLOCK-----\n"))
	file := filepath.Join(f.TempDir(), "signers")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		signers, err := signature.Load(file)
		if err != nil {
			return
		}
		if who, err := signers.Verify([]byte("tree 1\n\nx\n")); err == nil || who != "" {
			t.Fatalf("signed by %q", who)
		}
	})
}
