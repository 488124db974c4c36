package bundle

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
)

// directory is one directory of policies as it could last be read.
type directory struct {
	path  string
	layer policy.Layer
	key   string
	// read is when that was.
	read time.Time
	// problem of the last attempt; "": there was none.
	problem string
}

// readDirs reads the directories again. One that cannot be read stays as it was. The result is another list.
func (s *Store) readDirs(ctx context.Context) []directory {
	var out []directory
	for _, was := range s.dirs { // only a refresh changes them
		now := was
		now.problem = ""
		if layer, err := ReadDir(was.path); err != nil {
			now.problem = oneLine(err.Error())
		} else {
			now.layer, now.key, now.read = layer, keyOf(layer), s.now()
		}
		switch {
		case now.problem != "" && now.problem != was.problem:
			s.log.WarnContext(ctx, "the directory of policies cannot be read: it stays as it was", "dir", was.path,
				"problem", now.problem)
		case now.problem != "":
		case now.key != was.key:
			s.log.InfoContext(ctx, "the directory of policies changed", "dir", was.path)
		case was.problem != "":
			s.log.InfoContext(ctx, "the directory of policies can be read again", "dir", was.path)
		}
		out = append(out, now)
	}
	return out
}

// dirFact is the directory's content by its hash, as old as the last time that it could be read. As with bundles, its
// words stay the same while what is wrong does, and a problem is said once the fact is too old.
func (s *Store) dirFact(d directory) rollout.Fact {
	out := rollout.Fact{ObservedAt: d.read.UTC(), MaxAge: s.maxAge, Source: "policy directory " + d.path}
	if d.problem != "" && s.now().Sub(d.read) > s.maxAge {
		out.Error = "it cannot be read any more: " + d.problem
		return out
	}
	text, err := json.Marshal("sha256:" + d.key[:12])
	if err != nil {
		out.Error = err.Error()
		return out
	}
	out.Value = text
	return out
}
