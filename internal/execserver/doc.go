// Package execserver runs processes and touches files for a client elsewhere,
// speaking protocol/exec. A Server serves any number of connections; each
// connection attaches to a session, and a session, not a connection, owns
// processes: it survives a lost connection for a while, keeps the newest output
// of every process and kills what it owns when it ends.
//
// It knows nothing of threads, turns or users: every client that may connect may run
// programs as the server's user. It refuses a sandbox it cannot enforce.
// It runs on Linux.
package execserver
