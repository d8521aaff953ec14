package execserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/exec"
	"golang.org/x/sys/unix"
)

// decode reads params into v and insists on the required members. The message
// was checked on arrival, so the scan for members needs no checks of its own.
func decode(raw json.RawMessage, v any, required ...string) *jsonrpc.Error {
	if err := strictjson.Unmarshal(raw, v); err != nil || !bytes.HasPrefix(bytes.TrimSpace(raw), []byte{'{'}) {
		if err == nil || len(raw) == 0 {
			err = errors.New("invalid type: params must be an object")
		}
		return invalid(err)
	}
	return need(raw, required...)
}

// need insists on members that are there and not null.
func need(raw json.RawMessage, required ...string) *jsonrpc.Error {
	var found uint64
	bad := ""
	members(raw, func(key, value []byte) {
		for i, name := range required {
			if string(key) == name {
				found |= 1 << i
				if !present(value) && bad == "" {
					bad = name
				}
			}
		}
	})
	if bad != "" {
		return jsonrpc.Errorf(exec.CodeInvalidParams, "invalid type: null, expected `%s`", bad)
	}
	for i, name := range required {
		if found&(1<<i) == 0 {
			return jsonrpc.Errorf(exec.CodeInvalidParams, "missing field `%s`", name)
		}
	}
	return nil
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

// members visits the members of a valid JSON object.
func members(raw []byte, visit func(key, value []byte)) {
	i := skipSpace(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return
	}
	i++
	for {
		i = skipSpace(raw, i)
		if i >= len(raw) || raw[i] != '"' {
			return
		}
		end := skipValue(raw, i)
		key := raw[i+1 : end-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			var name string
			_ = json.Unmarshal(raw[i:end], &name)
			key = []byte(name)
		}
		i = skipSpace(raw, end) + 1 // past the colon
		i = skipSpace(raw, i)
		end = skipValue(raw, i)
		visit(key, raw[i:end])
		i = skipSpace(raw, end)
		if i >= len(raw) || raw[i] != ',' {
			return
		}
		i++
	}
}

// memberOf returns one member of a valid JSON object, nil when absent.
func memberOf(raw []byte, name string) (value json.RawMessage) {
	members(raw, func(k, v []byte) {
		if string(k) == name {
			value = v
		}
	})
	return value
}

func skipSpace(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the offset after the value at i.
func skipValue(raw []byte, i int) int {
	depth := 0
	for i < len(raw) {
		switch raw[i] {
		case '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
			i = min(i+1, len(raw))
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			for i < len(raw) && !bytes.ContainsRune([]byte(",]} \n\t\r"), rune(raw[i])) {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// noParams accepts what methods without parameters accept: nothing, null, {}.
func noParams(raw json.RawMessage) *jsonrpc.Error {
	switch string(bytes.Join(bytes.Fields(raw), nil)) {
	case "", "null", "{}":
		return nil
	}
	return jsonrpc.Errorf(exec.CodeInvalidParams, "invalid type: map, expected unit")
}

func invalid(err error) *jsonrpc.Error {
	return jsonrpc.Errorf(exec.CodeInvalidParams, "%s", err)
}

// osText words an error of the system as clients know it.
func osText(err error) string {
	var no unix.Errno
	if !errors.As(err, &no) {
		return err.Error()
	}
	text := no.Error()
	return fmt.Sprintf("%s%s (os error %d)", strings.ToUpper(text[:1]), text[1:], int(no))
}

// fsError maps an error of a file call to its code.
func fsError(err error) *jsonrpc.Error {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return e
	}
	code := int64(exec.CodeInternal)
	switch {
	case errors.Is(err, unix.ENOENT):
		code = exec.CodeNotFound
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EINVAL), errors.Is(err, errInput):
		code = exec.CodeInvalidRequest
	}
	return jsonrpc.Errorf(code, "%s", osText(err))
}

// errInput marks input that can never succeed.
var errInput = errors.New("invalid input")

type inputError string

func (e inputError) Error() string        { return string(e) }
func (e inputError) Is(target error) bool { return target == errInput }
