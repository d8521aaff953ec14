// Package jobs runs commands in the boxes of threads, from the command line and by the
// tools that every agent has, with the real agent CLIs on the scripted model.
package jobs
