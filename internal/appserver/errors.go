package appserver

import (
	"context"
	"encoding/json"
	"errors"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/protocol/app"
)

// toWire gives an error the code that upstream would use. Nearly everything there
// is -32600; the class travels in data.
func toWire(err error) *jsonrpc.Error {
	var ready *jsonrpc.Error
	if errors.As(err, &ready) {
		return ready
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = thole.Errorf(thole.CodeUnavailable, "the request was given up: %w", err)
	}
	code := int64(jsonrpc.CodeInvalidRequest)
	class := thole.CodeOf(err)
	switch class {
	case thole.CodeOverloaded:
		code = jsonrpc.CodeOverloaded
	case thole.CodeInternal, thole.CodeUnavailable:
		code = jsonrpc.CodeInternal
	case thole.CodeUnsupported:
		code = jsonrpc.CodeMethodNotFound
	}
	data, _ := json.Marshal(app.ErrorData{Code: string(class), Hint: thole.HintOf(err)})
	return &jsonrpc.Error{Code: code, Message: err.Error(), Data: data}
}
