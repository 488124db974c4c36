package tree

// IsBelow reports whether a file is somewhere below a folder.
func IsBelow(file, dir string) bool {
	return len(file) > len(dir) && file[:len(dir)] == dir && file[len(dir)] == '/'
}
