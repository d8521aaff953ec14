// Package workspace owns a thread's file tree: it restores it into an executor by
// layers, links the agent CLIs' data, checks what the manifest requires, and
// syncs it into snapshots.
//
// A snapshot is a tree, stored under its own sum, and the objects it names; the
// row that says which snapshot a thread is at moves last, by compare-and-set
// under the lease of whoever syncs. A crash or a late writer therefore leaves the
// old snapshot or the new one. Objects are never changed and never named twice,
// so collecting what no snapshot needs cannot meet a sync that needs it.
//
// Manager is the end with the rows and the object store, Side the end with the
// files. Between them go links, each good for one object and a short time.
// Nothing here follows a symbolic link, and nothing is read or written outside
// the workspace.
package workspace
