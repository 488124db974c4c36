// Package mask replaces what may be secret in decisions, and in texts, by ***.
package mask
