// Package mutants breaks thole on purpose, one rule at a time, and sees to it that
// a test goes red each time. A file *.mutant says which rule it breaks, in which
// source file, what is there (once) and what takes its place, and which test must
// notice. Nothing in the source tree is changed.
package mutants
