// Package parse reads Rego modules and data files, and says with file and line what is wrong with them.
//
// It also has the contract: which packages and rules of policies are read, and for which actions.
package parse
