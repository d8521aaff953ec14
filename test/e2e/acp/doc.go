// Package acp proves that editors of the Agent Client Protocol work with the real program
// and the real agents: the protocol's own library as editor, every line of both sides held
// against the protocol's schema.
package acp
