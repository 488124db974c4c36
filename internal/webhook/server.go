package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// Bounds of a server. Forges wait for an answer for 10 seconds (GitHub, GitLab) or 5 (Gitea).
const (
	readTime   = 10 * time.Second
	leaveTime  = 5 * time.Second
	maxHeaders = 16 << 10
)

// ServerConfig is where a server listens.
type ServerConfig struct {
	// Address is host:port; without a host it is every address of the machine.
	Address string
	// Path of deliveries; any other is not found.
	Path string
	// CertFile and KeyFile are PEM files for TLS, read for each connection, so that they can be renewed. Without them
	// it is HTTP.
	CertFile, KeyFile string
	// ReadTime is how long a delivery may take to come; zero: 10 seconds.
	ReadTime time.Duration
	// Proven says that deliveries need a proof. Those that need none are taken on loopback only.
	Proven bool
	Log    *slog.Logger
}

// Server listens for deliveries.
type Server struct {
	sharing  *sharing
	listener net.Listener // sharing, by TLS or not
	server   *http.Server
}

// Listen begins to listen. No request is answered before Serve.
func Listen(ctx context.Context, cfg ServerConfig, handler http.Handler) (*Server, error) {
	address, err := cfg.check()
	if err != nil {
		return nil, err
	}
	if cfg.ReadTime == 0 {
		cfg.ReadTime = readTime
	}
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	s := &Server{sharing: &sharing{Listener: listener}}
	s.listener = s.sharing
	if cfg.CertFile != "" {
		s.listener = tls.NewListener(s.sharing, &tls.Config{NextProtos: []string{"http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cfg.certificate() }})
	}
	only := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != cfg.Path {
			answer(w, http.StatusNotFound, "there is nothing here")
			return
		}
		handler.ServeHTTP(w, r)
	})
	s.server = &http.Server{Handler: only, ReadTimeout: cfg.ReadTime, ReadHeaderTimeout: cfg.ReadTime,
		WriteTimeout: 2 * cfg.ReadTime,
		IdleTimeout:  cfg.ReadTime, MaxHeaderBytes: maxHeaders,
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug)}
	s.server.SetKeepAlivesEnabled(false) // deliveries are rare, and no other sender is to keep connections
	return s, nil
}

// check gives the address to listen on, if the configuration is one to listen with.
func (cfg ServerConfig) check() (string, error) {
	address, err := net.ResolveTCPAddr("tcp", cfg.Address)
	switch {
	case err != nil:
		return "", fmt.Errorf("the address for webhooks, %q, is not host:port: %w", cfg.Address, err)
	case !strings.HasPrefix(cfg.Path, "/"):
		return "", fmt.Errorf("the path of webhooks, %q, has to begin with a slash", cfg.Path)
	case (cfg.CertFile == "") != (cfg.KeyFile == ""):
		return "", errors.New("TLS for webhooks takes a certificate and its key, and only one of them is given")
	case !cfg.Proven && !address.IP.IsLoopback():
		return "", fmt.Errorf("webhooks on %s need a secret: without one only a loopback address is listened on, "+
			"such as 127.0.0.1:8090", cfg.Address)
	}
	if cfg.CertFile != "" {
		if _, err := cfg.certificate(); err != nil {
			return "", err
		}
	}
	return address.String(), nil
}

func (cfg ServerConfig) certificate() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the certificate for webhooks: %w", err)
	}
	return &pair, nil
}

// Address is where it listens, with the port that it got.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Serve answers until the context ends. Deliveries under way are then finished, for up to 5 seconds.
func (s *Server) Serve(ctx context.Context) error {
	left := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
		defer cancel()
		left <- errors.Join(s.server.Shutdown(end), s.server.Close())
	})
	err := s.server.Serve(s.listener)
	if stop() {
		return fmt.Errorf("listen for webhooks: %w", err) // it ended by itself, not with the context
	}
	return <-left
}
