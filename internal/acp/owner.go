package acp

import (
	"context"
	"errors"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/protocol/app"
)

// owner is the process that owns the home, for calls that any session makes. Its
// connection is made when it is needed and again when it ended.
type owner struct {
	dial func(context.Context, appclient.Options) (*appclient.Client, error)

	mu sync.Mutex // guards c, and that one connection is made at a time
	c  *appclient.Client
}

func (o *owner) client(ctx context.Context) (*appclient.Client, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.c != nil {
		select {
		case <-o.c.Done():
			o.c.Close()
			o.c = nil
		default:
			return o.c, nil
		}
	}
	c, err := o.dial(ctx, appclient.Options{})
	if err == nil {
		o.c = c
	}
	return c, err
}

func (o *owner) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.c != nil {
		o.c.Close()
	}
}

// giveUp bounds how long a call looks for an owner that answers it, maxRefused how often
// it is made again when the home cannot be reached or says that a part is missing.
const (
	giveUp     = 90 * time.Second
	maxRefused = 4
)

var redial = backoff.Policy{Min: 20 * time.Millisecond, Max: time.Second}

// once makes a call that must not be repeated: whether it had its effect is unknown when
// the connection ends.
func once[R any](ctx context.Context, o *owner, method string, params any) (out R, err error) {
	c, err := o.client(ctx)
	if err != nil {
		return out, err
	}
	return out, c.Call(ctx, method, params, &out)
}

// call makes a call that may be repeated, until an owner answers.
func call[R any](ctx context.Context, o *owner, method string, params any) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, giveUp)
	defer cancel()
	for pause, refusals := redial.Begin(), 0; ; {
		out, err := once[R](ctx, o, method, params)
		if err == nil {
			return out, nil
		}
		if !errors.Is(err, appclient.ErrClosed) {
			var refused *appclient.Error
			refusals++
			if refusals == maxRefused || errors.As(err, &refused) && class(err) != thole.CodeUnavailable {
				return out, err
			}
		}
		if pause.Wait(ctx) != nil {
			return out, err
		}
	}
}

// class is that of a refusal.
func class(err error) thole.Code {
	var refused *appclient.Error
	if errors.As(err, &refused) {
		return thole.Code(refused.Class)
	}
	return thole.CodeOf(err)
}

// toWire is an error as an editor shows it: many show the message alone, so the hint is
// part of it.
func toWire(err error) *jsonrpc.Error {
	var ready *jsonrpc.Error
	if errors.As(err, &ready) {
		return ready
	}
	text, hint := err.Error(), thole.HintOf(err)
	var refused *appclient.Error
	if errors.As(err, &refused) {
		text, hint = refused.Message, refused.Hint
	}
	code := int64(jsonrpc.CodeInternal)
	switch class(err) {
	case thole.CodeNotFound, thole.CodeGone:
		code = codeNotFound
	case thole.CodeInvalid, thole.CodeConflict, thole.CodeUnsupported, thole.CodeForbidden:
		code = jsonrpc.CodeInvalidParams
	}
	return withData(code, text, hint, string(class(err)))
}

func withData(code int64, text, hint, class string) *jsonrpc.Error {
	e := jsonrpc.Errorf(code, "%s", text)
	if hint != "" {
		e.Message += ". " + hint
	}
	e.Data = encode(app.ErrorData{Code: class, Hint: hint})
	return e
}
