package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/transport/unix"
	"github.com/tholehq/thole/internal/transport/ws"
)

// awayTUI runs the Codex TUI on a team server. The TUI gets a socket of its own, in a directory
// that only this user can enter, and never the token.
func (e *Env) awayTUI(ctx context.Context, b *bridge, path string, argv []string) error {
	dir, err := os.MkdirTemp("", "thole-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "tui.sock")
	l, err := unix.Listen(socket)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = ws.NewServer(ws.Options{IgnoreBinary: true, PingEvery: 30 * time.Second}, func(ctx context.Context, s jsonrpc.Stream) { _ = b.carry(ctx, withoutDirectory{s}) }).Serve(serving, l)
	}()
	defer func() { stop(); <-done }()
	cmd := exec.Command(path, append(argv[1:], "--remote", "unix://"+socket)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.In, e.rawOut, e.rawErr
	err = cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return ExitError(ended.ExitCode())
	}
	return err
}

// withoutDirectory leaves the directory in which the TUI stands out of what it asks: the server
// does not see it, and a thread there begins without files.
type withoutDirectory struct{ jsonrpc.Stream }

func (w withoutDirectory) Read(ctx context.Context) ([]byte, error) {
	text, err := w.Stream.Read(ctx)
	if err != nil || !bytes.Contains(text, []byte(`"thread/`)) || !bytes.Contains(text, []byte(`"cwd"`)) {
		return text, err
	}
	var m map[string]json.RawMessage
	var method string
	var params map[string]json.RawMessage
	if strictjson.Unmarshal(text, &m) != nil || strictjson.Unmarshal(m["method"], &method) != nil || strictjson.Unmarshal(m["params"], &params) != nil {
		return text, nil //nolint:nilerr // the server says what is wrong with it
	}
	if method != "thread/start" && method != "thread/resume" && method != "thread/fork" {
		return text, nil
	}
	delete(params, "cwd")
	if m["params"], err = json.Marshal(params); err != nil {
		return nil, err
	}
	return json.Marshal(m)
}
