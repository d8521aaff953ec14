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

// decode reads params into v. The tags of its type say which members may be absent or
// null; the scan of the message has refused keys that occur twice.
func decode(raw json.RawMessage, v any) *jsonrpc.Error {
	if len(raw) == 0 {
		return jsonrpc.Errorf(exec.CodeInvalidParams, "invalid type: params must be an object")
	}
	if err := strictjson.UnmarshalWhole(raw, v); err != nil {
		return invalid(err)
	}
	return nil
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

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
