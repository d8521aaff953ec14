// Package pipeline proves the turn pipeline from end to end: the real thole binary
// with the real agent CLIs in local executors, driven over HTTP as any client
// would, answered by the scripted model.
package pipeline
