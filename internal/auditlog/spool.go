package auditlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/rampart-gitops/rampart/internal/atomicfile"
)

// spool is a file of decisions that wait for the store.
type spool struct {
	name string
	file *os.File
	// behind says that the file lacks something that waits: it is to be written anew.
	behind bool
}

// openSpool gives what waits in a spool. A last line that a killed bot did not finish was not kept, and goes. A spool
// that cannot be read is put aside.
func openSpool(name string, log *slog.Logger) (*spool, []waiting, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, nil, err
	}
	data, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	ws, err := readSpool(whole)
	if err != nil {
		log.Error("the spool of decisions is damaged and put aside", "spool", name, "as", name+".damaged", "error", err)
		if err := os.Rename(name, name+".damaged"); err != nil {
			return nil, nil, err
		}
		return &spool{name: name}, nil, nil
	}
	s := &spool{name: name, behind: len(whole) != len(data)}
	if s.behind {
		err = s.rewrite(ws)
	}
	return s, ws, err
}

// spoolLine is a decision that waits, as the spool has it.
type spoolLine struct {
	Decision
	// Done says whether something was carried out.
	Done bool `json:"done"`
}

func writeSpool(w io.Writer, ws []waiting) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range ws {
		if err := enc.Encode(spoolLine{ws[i].Decision, ws[i].done}); err != nil {
			return fmt.Errorf("write decision %s: %w", ws[i].ID, err)
		}
	}
	return nil
}

// readSpool reads what writeSpool wrote.
func readSpool(data []byte) ([]waiting, error) {
	var out []waiting
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		var l spoolLine
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("decode decision %d: %w", len(out)+1, err)
		}
		s, k, err := recorded(l.Decision)
		if err != nil {
			return nil, err
		}
		out = append(out, waiting{Decision: l.Decision, subject: s, key: k, done: l.Done})
	}
}

// append adds decisions. After an error the file may lack them, or have a part of them: the next write makes it anew.
func (s *spool) append(added, all []waiting) error {
	if s.behind {
		return s.rewrite(all)
	}
	s.behind = true
	if s.file == nil {
		f, err := os.OpenFile(s.name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		s.file = f
	}
	var b bytes.Buffer
	if err := writeSpool(&b, added); err != nil {
		return err
	}
	if _, err := s.file.Write(b.Bytes()); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	s.behind = false
	return nil
}

// rewrite replaces the file, in one step.
func (s *spool) rewrite(all []waiting) error {
	s.behind = true
	if err := s.close(); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := writeSpool(&b, all); err != nil {
		return err
	}
	if err := atomicfile.Write(s.name, b.Bytes(), 0o600); err != nil {
		return err
	}
	s.behind = false
	return nil
}

func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
