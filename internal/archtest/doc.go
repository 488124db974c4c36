// Package archtest holds the rules of which package may know which: its test reads what the packages import.
package archtest
