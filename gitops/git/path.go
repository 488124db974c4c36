package git

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// PathProblem says what is wrong with a path.
type PathProblem string

// The problems of a PathError.
const (
	PathEmpty       PathProblem = "is empty"
	PathAbsolute    PathProblem = "is absolute"
	PathComponent   PathProblem = "has an empty, . or .. component"
	PathDotGit      PathProblem = "has a component that some file system takes for .git or .gitmodules"
	PathCharacter   PathProblem = "has a backslash, a control character or bytes that are not UTF-8"
	PathLong        PathProblem = "is too long"
	PathDuplicate   PathProblem = "is changed twice"
	PathConflict    PathProblem = "is to be both a file and a directory"
	PathIsDirectory PathProblem = "is a directory"
	PathUnderFile   PathProblem = "lies below a file"
	PathIsSymlink   PathProblem = "is, or lies below, a symbolic link"
	PathCollision   PathProblem = "is another file's name on file systems that do not tell letters' cases or " +
		"spellings apart"
	PathIsSubmodule PathProblem = "is, or lies below, a submodule"
	PathUnreadable  PathProblem = "is, or lies below, a directory that cannot be read"
)

// PathError says that a path may not be written.
type PathError struct {
	Path    string
	Problem PathProblem
}

func (e *PathError) Error() string { return fmt.Sprintf("path %q %s", e.Path, e.Problem) }

const (
	maxComponent = 255  // what common file systems take
	maxPath      = 4096 // PATH_MAX, and git fsck's largePathname
)

// CheckPath refuses paths that git or a file system could take for something else than a file below the root. See the
// PathProblem values that speak of the path alone. The error is a *PathError.
func CheckPath(path string) error {
	problem := pathProblem(path)
	if problem == "" {
		return nil
	}
	return &PathError{Path: path, Problem: problem}
}

func pathProblem(path string) PathProblem {
	switch {
	case path == "":
		return PathEmpty
	case path[0] == '/':
		return PathAbsolute
	case len(path) > maxPath:
		return PathLong
	case !utf8.ValidString(path):
		return PathCharacter
	}
	for name := range strings.SplitSeq(path, "/") {
		if problem := nameProblem(name); problem != "" {
			return problem
		}
	}
	return ""
}

func nameProblem(name string) PathProblem {
	switch {
	case name == "" || name == "." || name == "..":
		return PathComponent
	case len(name) > maxComponent:
		return PathLong
	case isReserved(name):
		return PathDotGit
	}
	for i := range len(name) {
		if c := name[i]; c < 0x20 || c == 0x7f || c == '\\' {
			return PathCharacter
		}
	}
	return ""
}

// isReserved finds names that git itself, NTFS or HFS+ take for .git or .gitmodules. NTFS ignores case, trailing
// dots and spaces, and streams after a colon, and has short names; HFS+ ignores some code points. The rules are
// those of git's is_ntfs_dotgit, is_hfs_dotgit and is_ntfs_dot_generic.
func isReserved(name string) bool {
	for _, n := range []string{name, dropIgnored(name)} {
		if i := strings.IndexAny(n, ":\\"); i >= 0 {
			n = n[:i]
		}
		switch strings.ToLower(strings.TrimRight(n, ". ")) {
		case ".git", "git~1", ".gitmodules", "gitmod~1", "gitmod~2", "gitmod~3", "gitmod~4":
			return true
		}
		if isHashedShortName(n) {
			return true
		}
	}
	return false
}

// isHashedShortName finds the fallback short names that NTFS gives to .gitmodules. They are a prefix of "gi7eba" (the
// name's first letters and a hash) followed by ~ and a number, eight characters in all.
func isHashedShortName(name string) bool {
	const hashed = "gi7eba"
	name = strings.ToLower(strings.TrimRight(name, ". "))
	stem, digits, found := strings.Cut(name, "~")
	if !found || len(name) != 8 || stem == "" || !strings.HasPrefix(hashed, stem) || digits[0] < '1' ||
		digits[0] > '9' {
		return false
	}
	return strings.Trim(digits, "0123456789") == ""
}

// collide says whether two different names are the same to some file system. One may ignore case (NTFS), or also
// how a character is composed (HFS+, APFS).
func collide(a, b string) bool {
	if a == b {
		return false
	}
	if strings.EqualFold(a, b) {
		return true
	}
	return (!isASCII(a) || !isASCII(b)) && folded(a) == folded(b)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// folded gives names that collide the same form. Folding may compose anew, hence twice.
func folded(name string) string {
	return norm.NFC.String(cases.Fold().String(norm.NFD.String(dropIgnored(name))))
}

// dropIgnored removes the code points that HFS+ ignores in names (git's next_hfs_char).
func dropIgnored(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, name)
}
