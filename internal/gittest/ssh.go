package gittest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rampart-gitops/rampart/internal/testneed"
)

// SSHServer is the system's sshd on loopback, for the user who runs the test and one key.
type SSHServer struct {
	Addr           string // host:port
	User           string
	KeyFile        string // private key that may log in
	OtherKeyFile   string // private key that may not
	KnownHostsFile string // has the server's key
	OtherHostsFile string // has another key for the server

	connections atomic.Int64
}

// URL is a repository's ssh:// URL.
func (s *SSHServer) URL(r *Repo) string { return "ssh://" + s.User + "@" + s.Addr + r.Dir }

// Connections is how many connections were made so far.
func (s *SSHServer) Connections() int { return int(s.connections.Load()) }

// ServeSSH runs sshd until the test ends, one process for each connection. Where there is none: testneed.Missing.
func ServeSSH(tb testing.TB) *SSHServer {
	tb.Helper()
	sshd := findSSHD(tb)
	me, err := user.Current()
	if err != nil {
		tb.Fatal(err)
	}
	if os.Geteuid() == 0 {
		// sshd run by root insists on its directory for privilege separation.
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			tb.Fatalf("sshd run by root needs /run/sshd: %v", err)
		}
	}
	dir := tb.TempDir()
	hostKey := newKey(tb, filepath.Join(dir, "host_key"))
	strangeKey := newKey(tb, filepath.Join(dir, "strange_key"))
	userKey := newKey(tb, filepath.Join(dir, "user_key"))
	newKey(tb, filepath.Join(dir, "other_key"))
	write(tb, filepath.Join(dir, "authorized_keys"), string(ssh.MarshalAuthorizedKey(userKey)))
	config := filepath.Join(dir, "sshd_config")
	write(tb, config, strings.Join([]string{
		"HostKey " + filepath.Join(dir, "host_key"),
		"AuthorizedKeysFile " + filepath.Join(dir, "authorized_keys"),
		"PidFile none", "StrictModes no", "UsePAM no", "UseDNS no", "PermitRootLogin prohibit-password",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no", "PrintMotd no", "LogLevel ERROR",
	}, "\n")+"\n")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &SSHServer{
		Addr: listener.Addr().String(), User: me.Username,
		KeyFile: filepath.Join(dir, "user_key"), OtherKeyFile: filepath.Join(dir, "other_key"),
		KnownHostsFile: filepath.Join(dir, "known_hosts"), OtherHostsFile: filepath.Join(dir, "other_hosts"),
	}
	write(tb, s.KnownHostsFile, knownHost(s.Addr, hostKey))
	write(tb, s.OtherHostsFile, knownHost(s.Addr, strangeKey))
	s.serve(tb, listener, sshd, config)
	return s
}

// serve starts "sshd -i" on each connection, so that the port is known and listened on from the start.
func (s *SSHServer) serve(tb testing.TB, listener net.Listener, sshd, config string) {
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.connections.Add(1)
			running.Go(func() { serveOne(conn, sshd, config) })
		}
	})
	tb.Cleanup(func() {
		_ = listener.Close()
		running.Wait() // clients close their connections in earlier cleanups
	})
}

func serveOne(conn net.Conn, sshd, config string) {
	file, err := conn.(*net.TCPConn).File()
	_ = conn.Close() // file is a duplicate
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	cmd := exec.Command(sshd, "-i", "-e", "-f", config)
	cmd.Stdin, cmd.Stdout = file, file
	_ = cmd.Run() // a connection that is cut ends it with an error
}

func findSSHD(tb testing.TB) string {
	tb.Helper()
	for _, path := range []string{"/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd"} {
		if _, err := os.Stat(path); err == nil {
			return path // sshd wants to be called by its full path
		}
	}
	path, err := exec.LookPath("sshd")
	if err != nil {
		testneed.Missing(tb, "sshd is needed and not installed (Debian: apt-get install openssh-server)")
	}
	return path
}

func knownHost(addr string, key ssh.PublicKey) string {
	host, port, _ := strings.Cut(addr, ":")
	return fmt.Sprintf("[%s]:%s %s", host, port, ssh.MarshalAuthorizedKey(key))
}

func newKey(tb testing.TB, file string) ssh.PublicKey {
	tb.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "test")
	if err != nil {
		tb.Fatal(err)
	}
	write(tb, file, string(pem.EncodeToMemory(block)))
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func write(tb testing.TB, file, text string) {
	tb.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// EncryptKey gives the user's private key in a new file that wants a passphrase.
func (s *SSHServer) EncryptKey(tb testing.TB, passphrase string) string {
	tb.Helper()
	data, err := os.ReadFile(s.KeyFile)
	if err != nil {
		tb.Fatal(err)
	}
	key, err := ssh.ParseRawPrivateKey(data)
	if err != nil {
		tb.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(*key.(*ed25519.PrivateKey), "test", []byte(passphrase))
	if err != nil {
		tb.Fatal(err)
	}
	file := filepath.Join(tb.TempDir(), "locked_key")
	write(tb, file, string(pem.EncodeToMemory(block)))
	return file
}

// Forward runs "ssh -D", a SOCKS5 proxy whose connections leave from the server, until the test ends, and gives its
// host:port.
func (s *SSHServer) Forward(tb testing.TB) string {
	tb.Helper()
	free, err := testneed.FreePort()
	if err != nil {
		tb.Fatal(err)
	}
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(free))
	host, port, _ := strings.Cut(s.Addr, ":")
	cmd := exec.Command("ssh", "-N", "-F", "none", "-D", at, "-p", port, "-i", s.KeyFile, "-o",
		"ExitOnForwardFailure=yes", "-o", "BatchMode=yes",
		"-o", "IdentitiesOnly=yes", "-o", "UserKnownHostsFile="+s.KnownHostsFile, "-o", "StrictHostKeyChecking=yes",
		s.User+"@"+host)
	said := &strings.Builder{}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	tb.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	if !listens(at, ended) {
		tb.Fatalf("ssh -D %s: %s", at, said)
	}
	return at
}

// listens waits until somebody listens, or it ended.
func listens(at string, ended <-chan struct{}) bool {
	for {
		conn, err := net.Dial("tcp", at)
		if err == nil {
			_ = conn.Close()
			return true
		}
		select {
		case <-ended:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
}
