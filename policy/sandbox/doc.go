// Package sandbox keeps the evaluation of policies that are not trusted within bounds of time, steps and memory.
//
// It refuses modules that would exhaust the parser or the compiler (CheckParsing, CheckSize, CheckDepth, CheckWidth),
// leaves out builtins that reach outside (Capabilities), and makes a compiled program count what it uses (Instrument),
// against the Budget of each query.
package sandbox
