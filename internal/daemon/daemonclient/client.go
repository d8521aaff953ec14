// Package daemonclient lets a command talk to the process that owns a home, and
// starts that process when nobody answers. It opens no store.
//
// Every request may be repeated: submissions carry the id of the job they make
// and endings the id of the request, so a connection that dies without an answer
// is simply asked again, of the same owner or its successor.
package daemonclient

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/peercred"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/transport/stdio"
	"github.com/tholehq/thole/internal/transport/unix"
	"github.com/tholehq/thole/internal/version"
)

// giveUp bounds how long a request is repeated without any answer.
const giveUp = 60 * time.Second

// ErrNobody: the home has no owner. An owner that does not answer, because it
// starts, ends or hangs, is another error.
var ErrNobody = errors.New("no thole process owns")

// Client asks the owner of one home.
type Client struct {
	Home string
	// NoStart asks only an owner that is already there; Wait also one that starts, and
	// waits for the end of one that ends.
	NoStart, Wait bool
	// Older is called with an owner that is older than this program and that no command
	// replaces, because a person or a service started it; nil: it is not reported.
	Older func(wire.Status)
}

// Call asks the owner, starting it if needed.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	deadline := time.Now().Add(giveUp)
	for unanswered := (backoff.Policy{Min: time.Millisecond, Max: 100 * time.Millisecond}).Begin(); ; {
		err := c.once(ctx, method, params, result)
		if err == nil || !repeatable(err) || ctx.Err() != nil {
			return err
		}
		if absent(err) && c.NoStart {
			owned, unknown := daemon.Owned(c.Home)
			if unknown != nil {
				return unknown
			}
			if !owned {
				return thole.Errorf(thole.CodeUnavailable, "%w %s", ErrNobody, c.Home).WithHint("any thole job command starts one")
			}
			if !c.Wait {
				return thole.Errorf(thole.CodeUnavailable, "the owner of %s starts or ends: %w", c.Home, err).WithHint("try again")
			}
		}
		if time.Now().After(deadline) {
			return thole.Errorf(thole.CodeUnavailable, "the owner of %s does not answer: %w", c.Home, err).WithHint("see %s/daemon.log, or what thole up printed", c.Home)
		}
		if absent(err) && !c.NoStart {
			if err := c.start(ctx); err != nil {
				return err
			}
			// It answers now: asking at once is what beats the process that stops it.
			unanswered.Reset()
			continue
		}
		if err := unanswered.Wait(ctx); err != nil {
			return err
		}
	}
}

// once asks without repeating. The version is compared on the way: it costs no
// round trip of its own.
func (c *Client) once(ctx context.Context, method string, params, result any) error {
	nc, err := unix.Dial(ctx, daemon.Socket(c.Home))
	if err != nil {
		return err
	}
	conn := jsonrpc.NewConn(stdio.New(nc, nc, 0), jsonrpc.Options{})
	done := make(chan struct{})
	go func() { defer close(done); _ = conn.Run(context.WithoutCancel(ctx)) }()
	defer func() { conn.Close("done"); <-done }()
	var old atomic.Bool
	var behind atomic.Pointer[wire.Status]
	_, err = conn.Go(ctx, wire.Hello, wire.HelloParams{Version: version.Version}, func(raw json.RawMessage, err error) {
		var st wire.Status
		if err == nil && strictjson.Unmarshal(raw, &st) == nil {
			old.Store(st.Role == "daemon" && newer(version.Version, st.Version))
			if st.Role != "daemon" && newer(version.Version, st.Version) {
				behind.Store(&st)
			}
		}
	})
	if err != nil {
		return fromWire(err)
	}
	err = conn.Call(ctx, method, params, result)
	if st := behind.Load(); st != nil && c.Older != nil {
		c.Older(*st)
	}
	if err == nil && old.Load() && !c.NoStart {
		// The answer stands; the next one shall come from this version.
		_, _ = spawn(c.Home, "--takeover")
	}
	return fromWire(err)
}

// repeatable reports whether nobody answered: absence or a connection that ended, but
// for one that the owner ended because of who we are.
func repeatable(err error) bool {
	return absent(err) || errors.Is(err, jsonrpc.ErrClosed) && !errors.Is(err, peercred.ErrOtherNamespace)
}

func absent(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOTDIR)
}

func fromWire(err error) error {
	var refused *thole.Error
	if errors.Is(err, peercred.ErrOtherNamespace) && errors.As(err, &refused) {
		return refused // without what the connection says about its end
	}
	var e *jsonrpc.Error
	if !errors.As(err, &e) {
		return err
	}
	var d wire.ErrorData
	if strictjson.Unmarshal(e.Data, &d) != nil || d.Code == "" {
		if e.Code == jsonrpc.CodeOverloaded {
			d.Code = string(thole.CodeOverloaded)
		} else {
			d.Code = string(thole.CodeInternal)
		}
	}
	return &thole.Error{Code: thole.Code(d.Code), Message: e.Message, Hint: d.Hint}
}
