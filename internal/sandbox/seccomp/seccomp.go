// Package seccomp makes the system call filters of sandboxes, as programs for
// bubblewrap's --seccomp. A filter takes away what no program inside needs and what
// has led out of sandboxes before; the namespaces remain the wall. It installs no
// filter and knows no policy but its profiles.
package seccomp

// Profile is one filter.
type Profile uint8

const (
	// Box is for executors, which have a network of their own: netlink and debuggers
	// work in it.
	Box Profile = iota
	// Networked is for a program of the exec-server that may use the machine's network.
	Networked
	// Restricted is for one that may not: it can talk to nobody, unix sockets included.
	Restricted
	// InPlace is Box for executors whose agents make files that belong to a person: none of
	// them runs as that person for others.
	InPlace
)
