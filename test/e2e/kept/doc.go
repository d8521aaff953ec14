// Package kept opens what earlier versions of thole left and goes on with it.
//
// testdata has a home that `thole up --demo` of a commit made, and a PostgreSQL
// database with its objects that the shipped pipeline of that commit made, as
// pg_dump --inserts wrote it. Each holds one thread: turns that ended, with text,
// todos and a file; a message that waits in its queue; a job whose result was
// delivered (home) or waits for its delivery (PostgreSQL), and one that still runs.
// A commit that changes what is stored adds a pair of its own and keeps the others.
//
// v0.1.0.tar.zst is a home of the program before its redesign, with threads of every
// agent, jobs, batches, artifacts and settings, and with what that program said of
// them; v0.1.0.sh made it.
package kept
