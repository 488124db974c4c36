// Package archtest holds the rules for imports between packages, and for what documents and comments say. Its tests
// read them all.
package archtest
