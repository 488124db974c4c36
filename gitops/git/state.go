package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// The directory is a bare repository that native git can look at. Beside the packs it holds three small
// files of ours, each replaced in one step: which repository it mirrors (config), the tips whose objects
// are on disk (packed-refs), and where history was cut (shallow).
const (
	configFile  = "config"
	refsFile    = "packed-refs"
	shallowFile = "shallow"
	headFile    = "HEAD"
	lockFile    = "rampart.lock"
	refsDir     = "refs"
	objectsDir  = "objects"
	packDir     = "objects/pack"

	refsPrefix   = "refs/"
	branchPrefix = "refs/heads/"

	// maxPacks is when a mirror is rather filled anew than searched pack by pack.
	maxPacks = 100
)

// state is what the small files say.
type state struct {
	tips    map[string]Hash // by branch
	shallow map[Hash]bool
	// partial says that blobs were left on the server.
	partial bool
}

func newState() state { return state{tips: map[string]Hash{}, shallow: map[Hash]bool{}} }

const configMark = "# A disposable mirror kept by rampart.\n"

// noBlobs is what a server is asked to leave out.
var noBlobs = packp.FilterBlobNone()

// configText is the mirror's configuration, by which git knows a partial clone.
func configText(url string, partial bool) string {
	version, extensions, remote := 0, "", ""
	if partial {
		version, extensions, remote = 1, "[extensions]\n\tpartialClone = origin\n",
			fmt.Sprintf("\tpromisor = true\n\tpartialclonefilter = %s\n", noBlobs)
	}
	return fmt.Sprintf(configMark+"[core]\n\trepositoryformatversion = %d\n\tbare = true\n%s"+
		"[remote \"origin\"]\n\turl = %s\n\tfetch = +refs/heads/*:refs/heads/*\n%s", version, extensions, url, remote)
}

// errForeign says that a directory is not ours to empty.
var errForeign = errors.New("the directory is not empty and not a mirror")

// loadState reads the small files and checks that the packs are whole. Any error means: fill it anew,
// except errForeign.
func loadState(dir, url string) (state, error) {
	config, err := os.ReadFile(filepath.Join(dir, configFile))
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, checkEmpty(dir)
	}
	if err != nil {
		return state{}, err
	}
	if len(config) == 0 {
		return state{}, errors.New("its config is empty") // as a crash may leave it
	}
	if !bytes.HasPrefix(config, []byte(configMark)) {
		return state{}, errForeign
	}
	partial := string(config) == configText(url, true)
	if !partial && string(config) != configText(url, false) {
		return state{}, errors.New("it mirrors another repository, or is one of another version of Rampart")
	}
	if err := checkPacks(filepath.Join(dir, packDir)); err != nil {
		return state{}, err
	}
	s := newState()
	s.partial = partial
	if err := s.readRefs(filepath.Join(dir, refsFile)); err != nil {
		return state{}, err
	}
	return s, s.readShallow(filepath.Join(dir, shallowFile))
}

// errFresh says that there is no mirror yet.
var errFresh = errors.New("no mirror yet")

func checkEmpty(dir string) error {
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		if n.Name() != lockFile {
			return errForeign
		}
	}
	return errFresh
}

// checkPacks finds packs that a crash cut short: the last bytes of a pack are the hash in its name.
func checkPacks(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	packs := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".pack") {
			continue
		}
		if packs++; packs > maxPacks {
			return fmt.Errorf("it has more than %d packs", maxPacks)
		}
		if err := checkPack(filepath.Join(dir, f.Name())); err != nil {
			return fmt.Errorf("pack %s: %w", f.Name(), err)
		}
	}
	return removeTemporary(dir)
}

func checkPack(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	var sum Hash
	if _, err := f.Seek(-int64(len(sum)), io.SeekEnd); err != nil {
		return err
	}
	if _, err := io.ReadFull(f, sum[:]); err != nil {
		return err
	}
	if filepath.Base(name) != packPrefix+sum.String()+".pack" {
		return errors.New("it is cut short")
	}
	_, err = os.Stat(strings.TrimSuffix(name, ".pack") + ".idx")
	return err
}

func (s state) readRefs(name string) error {
	return readLines(name, func(line string) error {
		hash, ref, ok := strings.Cut(line, " ")
		if !ok || !strings.HasPrefix(ref, refsPrefix) || !plumbing.IsHash(hash) {
			return fmt.Errorf("malformed line %q", line)
		}
		s.tips[branchOf(ref)] = plumbing.NewHash(hash)
		return nil
	})
}

func (s state) readShallow(name string) error {
	return readLines(name, func(line string) error {
		if !plumbing.IsHash(line) {
			return fmt.Errorf("malformed line %q", line)
		}
		s.shallow[plumbing.NewHash(line)] = true
		return nil
	})
}

// readLines calls f for each line of a file, except comments. A file that is not there has no lines.
func readLines(name string, f func(string) error) error {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if err := f(line); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
	}
	return nil
}

func (s state) writeRefs(dir string) error {
	refs := make([]string, 0, len(s.tips))
	for b := range s.tips {
		refs = append(refs, refOf(b))
	}
	slices.Sort(refs)
	text := "# pack-refs with: sorted \n"
	for _, ref := range refs {
		text += s.tips[branchOf(ref)].String() + " " + ref + "\n"
	}
	return replaceFile(filepath.Join(dir, refsFile), text)
}

func (s state) writeShallow(dir string) error {
	text := ""
	for _, h := range s.shallowList() {
		text += h.String() + "\n"
	}
	return replaceFile(filepath.Join(dir, shallowFile), text)
}

func (s state) shallowList() []Hash {
	list := make([]Hash, 0, len(s.shallow))
	for h := range s.shallow {
		list = append(list, h)
	}
	plumbing.HashesSort(list)
	return list
}

// createLayout makes an empty mirror of dir, removing an old one. It removes nothing but a mirror's own files.
func createLayout(dir, url string) error {
	// What is left by a crash in between is a mirror that has nothing, or not all: it is filled anew.
	if err := replaceFile(filepath.Join(dir, configFile), configText(url, false)); err != nil {
		return err
	}
	for _, name := range []string{refsFile, shallowFile, headFile, refsDir, objectsDir} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for _, name := range []string{refsDir, packDir} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	return replaceFile(filepath.Join(dir, headFile), "ref: "+branchPrefix+"main\n")
}

func replaceFile(name, text string) error {
	tmp := name + ".tmp"
	if err := os.WriteFile(tmp, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, name)
}

// temporary is what files begin with that are not whole yet, here and in go-git.
const temporary = "tmp_"

// removeTemporary removes what an interrupted download left behind. An index comes to disk before its pack, and one
// that is there is not written again: without a pack, it may be a part of one.
func removeTemporary(dir string) error {
	files, err := os.ReadDir(dir)
	packs := map[string]bool{}
	for _, f := range files {
		if stem, ok := strings.CutSuffix(f.Name(), ".pack"); ok {
			packs[stem] = true
		}
	}
	for _, f := range files {
		stem, isIndex := strings.CutSuffix(f.Name(), ".idx")
		if strings.HasPrefix(f.Name(), temporary) || isIndex && !packs[stem] {
			err = errors.Join(err, os.Remove(filepath.Join(dir, f.Name())))
		}
	}
	return err
}
