// Package chat speaks the AI SDK UI message stream (wire version v1, npm ai 5 to
// 7): it turns the events of one turn into chunks, and chunks into the parts of
// a UIMessage, so that what was streamed and what is read back later are the
// same message.
//
// Encoder is a pure fold: events in, chunks out, no clock and no I/O. Message
// folds chunks as the official client does. Request reads what that client
// sends. The package puts nothing on the wire that the protocol does not know:
// an unknown chunk type ends the client's stream, so our own facts travel as
// data-* parts and message metadata.
package chat
