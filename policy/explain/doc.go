// Package explain watches the evaluation of a policy and keeps, for each rule, which of its expressions were true and
// where it ended.
package explain
