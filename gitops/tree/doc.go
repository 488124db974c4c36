// Package tree reads files at one moment, wherever they are: of a commit in a mirror, in a folder on disk, or in
// memory. A few kilobytes of objects of a repository can name more files than any machine has room for: a Budget bounds
// what one walk sees.
package tree
