// Package keys plants a key in every place that thole takes one from, lets the real CLIs
// work, and looks for the keys in everything that an agent can read or that is stored;
// and it uses what an agent does have, a token of the gateway, in every way but the one
// it is for.
package keys
