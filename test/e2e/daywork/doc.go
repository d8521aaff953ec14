// Package daywork proves that what a developer's agent does all day still works in
// its box: the real program, the real CLIs, real tools, and servers of the test's
// own that the box reaches through the proxy.
package daywork
