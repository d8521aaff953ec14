package codex

import (
	"bytes"
	"encoding/json"
)

// texts walks the members of a JSON object whose values are strings and hands out
// each key and value as they stand between their quotes. The object was checked by
// the envelope's decoder, so nothing is checked again.
func texts(object []byte, see func(key, value []byte)) {
	rest := object
	for {
		open := bytes.IndexByte(rest, '"')
		if open < 0 {
			return
		}
		key, after := quoted(rest[open:])
		after = bytes.TrimLeft(after, ": \t\r\n")
		if len(after) == 0 {
			return
		}
		if after[0] != '"' {
			rest = skip(after)
			continue
		}
		value, behind := quoted(after)
		see(key, value)
		rest = behind
	}
}

// quoted splits off the string that b begins with.
func quoted(b []byte) (inner, rest []byte) {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return b[1:i], b[i+1:]
		}
	}
	return nil, nil
}

// skip returns what follows a value that is no string.
func skip(b []byte) []byte {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			_, rest := quoted(b[i:])
			i = len(b) - len(rest) - 1
		case ',':
			if depth == 0 {
				return b[i+1:]
			}
		}
	}
	return nil
}

// plain is the text of a string between its quotes.
func plain(inner []byte) string {
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	_ = json.Unmarshal(append(append([]byte{'"'}, inner...), '"'), &s)
	return s
}
