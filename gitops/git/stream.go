package git

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// command is git-upload-pack or git-receive-pack running at the other end of pipes, here or over SSH.
// go-git has clients for both, which cannot be stopped while they connect, and which connect anew for
// each conversation.
type command struct {
	addr    address
	service service
	watch   *watch

	stdin  io.WriteCloser
	stdout io.Reader
	stderr *head
	wait   func()       // returns when the command has ended
	kill   func()       // ends it at once; harmless at any time, from any goroutine
	access *AccessError // what it means when the command ends without a word
}

// stream is a conversation with a command.
type stream struct {
	*command
	out     *bufio.Reader
	unwatch func() bool // stops watching the context
	asked   bool        // a request was sent
	ended   bool        // the answer was read to its end
}

// openStream reads the advertisement. It takes over cmd, also when it fails.
func openStream(ctx context.Context, cmd *command) (session, *packp.AdvRefs, error) {
	s := &stream{command: cmd, out: bufio.NewReaderSize(cmd.stdout, 32<<10)}
	s.unwatch = context.AfterFunc(ctx, cmd.kill)
	adv := packp.NewAdvRefs()
	err := adv.Decode(&io.LimitedReader{R: s.out, N: maxAdvertisement})
	if err == nil || errors.Is(err, packp.ErrEmptyAdvRefs) {
		transport.FilterUnsupportedCapabilities(adv.Capabilities) // thin packs among them
		return s, adv, nil
	}
	// Nothing more will be said, and the reason stands on stderr once the command has ended.
	s.asked, s.ended = true, errors.Is(err, packp.ErrEmptyInput)
	s.close()
	return nil, nil, s.fail(ctx, err)
}

// fail says what an error of the conversation means.
func (s *stream) fail(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return interrupted(ctx, s.service, s.addr)
	}
	said := cleanText(s.stderr.String())
	if line, ok := errors.AsType[*pktline.ErrorLine](err); ok {
		said = cleanText(line.Text)
	}
	e := &AccessError{Op: s.service.op(), URL: s.addr.display, Reason: ReasonServer, Detail: said, Err: err}
	if errors.Is(err, packp.ErrEmptyInput) {
		e.Reason, e.Hint = s.access.Reason, s.access.Hint
	}
	if e.Detail == "" {
		e.Detail = cleanText(err.Error())
	}
	return e
}

func (s *stream) fetch(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	s.asked = true
	send := func() error {
		if err := req.UploadRequest.Encode(s.stdin); err != nil {
			return err
		}
		if err := req.UploadHaves.Encode(s.stdin, false); err != nil {
			return err
		}
		return pktline.NewEncoder(s.stdin).EncodeString("done\n")
	}
	if err := send(); err != nil {
		return nil, s.fail(ctx, err)
	}
	resp := packp.NewUploadPackResponse(req)
	if err := resp.Decode(io.NopCloser(s.answer())); err != nil {
		return nil, s.fail(ctx, err)
	}
	return resp, nil
}

func (s *stream) push(ctx context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	s.asked = true
	report, err := s.sendPack(req)
	switch {
	case err == nil:
		_, _ = io.Copy(io.Discard, s.answer()) // hooks may run on; the report is what counts
		return report, nil
	case ctx.Err() != nil:
		return nil, &sentError{interrupted(ctx, s.service, s.addr)}
	}
	return nil, &sentError{s.fail(ctx, err)}
}

func (s *stream) sendPack(req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	sent := errors.Join(req.Encode(s.stdin), s.stdin.Close())
	answer := s.answer()
	if req.Capabilities.Supports(capability.Sideband64k) {
		demux := sideband.NewDemuxer(sideband.Sideband64k, answer)
		demux.Progress = req.Progress
		answer = demux
	}
	report := packp.NewReportStatus()
	err := report.Decode(answer)
	if err != nil && sent != nil {
		return nil, sent
	}
	return report, err // also where sending failed: a server that has heard enough reports and ends before the rest
}

// answer notes when the server has said everything.
func (s *stream) answer() io.Reader { return &endWatcher{s} }

type endWatcher struct{ s *stream }

func (w *endWatcher) Read(p []byte) (int, error) {
	n, err := w.s.out.Read(p)
	if errors.Is(err, io.EOF) {
		w.s.ended = true
	}
	return n, err
}

// close takes leave properly where that is possible and ends the command otherwise.
func (s *stream) close() {
	if !s.asked {
		_, _ = s.stdin.Write(pktline.FlushPkt)
		_ = s.stdin.Close()
		_, _ = io.Copy(io.Discard, s.answer())
	}
	_ = s.stdin.Close()
	if !s.ended {
		s.kill()
	}
	s.watch.waits()
	s.wait()
	s.watch.got()
	s.unwatch()
}

// head keeps the beginning of what is written to it.
type head struct {
	mu   sync.Mutex
	text strings.Builder
}

const maxHead = 4 << 10

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Write(p[:min(len(p), maxHead-h.text.Len())])
	return len(p), nil
}

func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}
