// Package workspace is a thread's files as they are stored and spoken of: the tree
// and the snapshots, the manifest and the plan of layers that it makes, and what the
// two ends of the work say to each other. It holds data and the interfaces of its
// rows and sides; it moves no byte.
//
// A snapshot is a tree, stored under its own sum, and the objects it names; the
// row that says which snapshot a thread is at moves last, by compare-and-set
// under the lease of the syncing worker. A crash or a late writer therefore leaves the
// old snapshot or the new one. Objects are never changed and never named twice,
// so collecting what no snapshot needs cannot meet a sync that needs it.
//
// Package manager is the end with the rows and the object store, package side the
// end with the files, and package apart the latter in a process of its own. Between
// them go links, each good for one object and a short time.
package workspace
