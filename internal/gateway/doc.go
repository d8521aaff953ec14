// Package gateway is the one way from an executor to a model. It takes the requests of
// agent CLIs in their own dialect, checks the token of the executor, replaces it by the
// real credential, and passes the answer on byte by byte while it reads the usage.
//
// Entry points: New makes the http.Handler, NewServer and ListenProof serve it on a
// socket. The parts that know about rows, credentials and money are interfaces: Tokens,
// Routes and Ledger.
//
// Everything that arrives is hostile. A client chooses a route, a model and a body; the
// address, the path, the query and the headers that go upstream are the gateway's. It
// follows no redirect, keeps no cookie and sends nothing twice after the first byte of an
// answer went back. It refuses what it cannot read: bodies that two parsers could read
// differently, and calls whose cost cannot be bounded.
package gateway
