// Package compose makes commits of decisions: the files that change, the message, and the commit that asked.
package compose
