// Package report turns decisions and records into what a person reads and a program parses. It writes a plan with its
// verdicts and file diffs, a table of what Git says of each worker deployment, the explanation of one of them, and the
// timetable of a simulation.
//
// It is pure and decides nothing: everything it says follows from the values it was given, the time included. Values
// are safe to use from several goroutines as long as nothing changes them. The same input gives the same bytes: lists
// are sorted, and no times but those of the input appear. JSON field names are part of the command line's interface.
package report
