// Package lint finds what is wrong with policies, their tests and their data without evaluating them.
package lint
