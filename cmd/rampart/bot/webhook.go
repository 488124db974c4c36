package bot

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/webhook"
)

const variableWebhookSecret = "RAMPART_WEBHOOK_SECRET"

// webhookFlags say where webhooks are listened for.
type webhookFlags struct {
	address, path, secretFile, cert, key string
}

func (f *webhookFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.address, "webhook-address", "",
		"host:port to listen on for webhooks, which make the bot look at once")
	fs.StringVar(&f.path, "webhook-path", "/webhook", "path that webhooks are sent to")
	fs.StringVar(&f.secretFile, "webhook-secret-file", "",
		"file with the secrets of webhooks, one a line, read again for each (or "+variableWebhookSecret+")")
	fs.StringVar(&f.cert, "webhook-tls-cert", "", "PEM file with the certificate that webhooks are sent to by HTTPS")
	fs.StringVar(&f.key, "webhook-tls-key", "", "PEM file with the certificate's key")
}

// listen listens for webhooks, if it is to. They ring the loop's bell until stop, or the end of the context.
func (l *loop) listen(ctx context.Context, f webhookFlags,
	repository cmdutil.RepositoryFlags) (stop func(), err error) {
	if f.address == "" {
		if f.secretFile != "" || f.cert != "" || f.key != "" {
			return nil, errors.New("there are flags for webhooks, and no --webhook-address")
		}
		return func() {}, nil
	}
	log := l.Log.With("part", "webhook")
	secrets := l.Secret(f.secretFile, variableWebhookSecret)
	config := l.webhooks(repository)
	config.Secrets, config.Log = secrets, log
	handler, err := webhook.NewHandler(ctx, config)
	if err != nil {
		return nil, err
	}
	server, err := webhook.Listen(ctx, webhook.ServerConfig{Address: f.address, Path: f.path, CertFile: f.cert,
		KeyFile: f.key, Proven: secrets != nil, Log: log}, handler)
	if err != nil {
		return nil, err
	}
	scheme := "http"
	if f.cert != "" {
		scheme = "https"
	}
	log.InfoContext(ctx, "listening for webhooks", "url", scheme+"://"+server.Address()+f.path)
	if secrets == nil {
		log.WarnContext(ctx, "webhooks need no proof: keep the address out of reach from outside, also by a proxy")
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(ctx); err != nil {
			log.ErrorContext(ctx, "webhooks are not heard any more; the loop goes on", "error", err)
		}
	}()
	return func() { cancel(); <-done }, nil
}

// webhooks says what of a repository is listened for.
func (l *loop) webhooks(repository cmdutil.RepositoryFlags) webhook.Config {
	return webhook.Config{Repository: git.PathAtServer(repository.URL), Proposals: gitops.PullRequestBranches(),
		Watched: func(branch string) bool { return l.watched(branch, repository.Branch) }, Ring: l.hook,
		Now: l.Now}
}

// hook wakes the loop, which then asks the forge about pull requests too.
func (l *loop) hook() {
	l.hooked.Store(true)
	l.bell.Ring()
}

// watch notes the branches of a cycle's world.
func (l *loop) watch(w rollout.World) {
	if len(w.Environments) == 0 {
		return
	}
	var branches []string
	for _, e := range w.Environments {
		branches = append(branches, e.Environment.Output.Branch)
	}
	l.branches.Store(&branches)
}

// watched says whether something happens when a branch moves: that of the specs, or of an output.
func (l *loop) watched(branch, specs string) bool {
	outputs := l.branches.Load()
	return branch == specs || outputs == nil || slices.Contains(*outputs, branch)
}
