// Package acp serves threads to editors that speak the Agent Client Protocol, version 1:
// JSON-RPC 2.0, one message a line. Serve is one editor's connection. Each of its sessions
// is a thread; the package is a client of the thread contract and holds no truth, so that
// any number of editors, terminals and pages can be on one thread.
//
// A session is one goroutine. It reads the thread by a connection of its own, after a
// cursor, and writes to the editor. An editor that does not read holds up its sessions, the
// owner of the home ends their connections, and they continue after their cursors when
// the editor reads again; an owner that was killed looks the same.
//
// The package starts no agent, opens no store and reads no file of the user. It does start
// the MCP servers that an editor names, as the editor would: see servers.
package acp
