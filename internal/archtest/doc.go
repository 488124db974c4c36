// Package archtest holds the rules for imports between packages: its test reads what the packages import.
package archtest
