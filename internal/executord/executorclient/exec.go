package executorclient

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/protocol/exec"
)

// What an exec-server may say at once, and what of it waits here.
const (
	maxExecMessage = 32 << 20
	maxExecWaiting = 4 << 20
)

// Exec is a session with the exec-server of an executor, on one connection that is not
// resumed. What it started is killed with it, half a minute later by executords of earlier
// versions.
type Exec struct {
	rpc *jsonrpc.Conn
	can exec.Capabilities
	wg  sync.WaitGroup
}

// OpenExec opens a session. on gets its notifications, one at a time and in order; while
// it waits, the programs of the session wait too. Nil ignores them.
func (c *Client) OpenExec(ctx context.Context, on func(method string, params json.RawMessage)) (*Exec, error) {
	ctx, release := c.guard(ctx)
	defer release()
	o := ws.DialOptions{Token: c.token, Path: "/exec", Limit: maxExecMessage}
	if c.via {
		o.Connect = c.dial
	}
	stream, err := ws.Dial(ctx, c.execAt, o)
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "reach executor: %w", err)
	}
	x := &Exec{rpc: jsonrpc.NewConn(stream, jsonrpc.Options{
		Handler: execHandler(on), Limits: jsonrpc.Limits{Bytes: maxExecMessage}, IngressBytes: maxExecWaiting, Lossless: true, Overflow: jsonrpc.OverflowBlock,
	})}
	x.wg.Go(func() { _ = x.rpc.Run(context.Background()) })
	var hello exec.InitializeResult
	err = x.rpc.Call(ctx, exec.MethodInitialize, exec.InitializeParams{ClientName: "thole", EndWithConnection: true}, &hello)
	if err == nil {
		err = x.rpc.Notify(ctx, exec.NotifyInitialized, exec.Empty{})
	}
	if err != nil {
		x.Close()
		return nil, thole.Errorf(thole.CodeUnavailable, "reach executor: %w", err)
	}
	if hello.EnvironmentInfo != nil && hello.EnvironmentInfo.Capabilities != nil {
		x.can = *hello.EnvironmentInfo.Capabilities
	}
	return x, nil
}

// Can is what the exec-server advertises: an executor may be of an earlier version.
func (x *Exec) Can() exec.Capabilities { return x.can }

// Call calls a method. The error is a *jsonrpc.Error when the server refused.
func (x *Exec) Call(ctx context.Context, method string, params, result any) error {
	return x.rpc.Call(ctx, method, params, result)
}

// Send calls a method without waiting for its answer.
func (x *Exec) Send(method string, params any) {
	_, _ = x.rpc.Go(context.Background(), method, params, func(json.RawMessage, error) {})
}

// Done is closed when the connection has ended.
func (x *Exec) Done() <-chan struct{} { return x.rpc.Done() }

// Close ends the session and returns when on is not called any more. It may be repeated.
func (x *Exec) Close() {
	x.rpc.Close("done")
	x.wg.Wait()
}

// execHandler passes notifications on.
type execHandler func(method string, params json.RawMessage)

func (h execHandler) Notification(n *jsonrpc.Notification) {
	if h != nil {
		h(n.Method, n.Params)
	}
}

func (h execHandler) Request(req *jsonrpc.Request) {
	_ = req.Error(jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", req.Method))
}

// execAddress is where an executor's exec-server is dialed.
func execAddress(endpoint string) string {
	if path, ok := cutUnix(endpoint); ok {
		return "unix://" + path
	}
	return "ws" + strings.TrimPrefix(endpoint, "http") + "/exec"
}
