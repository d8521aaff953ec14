// Package chat drives the chat endpoint of a real server with the official ai
// package from npm. It holds only tests.
package chat
