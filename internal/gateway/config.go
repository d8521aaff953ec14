package gateway

import (
	"context"
	"log/slog"
)

// Config is what a gateway works with. Tokens, Routes and Ledger are required.
type Config struct {
	Tokens Tokens
	Routes Routes
	Ledger Ledger
	// Tools answers at ToolsPath; nil: nobody does.
	Tools Tools
	// Refused is called when an upstream answered 401 to a renewed credential.
	Refused func(ctx context.Context, c Claim, u Upstream)
	// Recorder keeps what was said, where that was asked for.
	Recorder Recorder
	Log      *slog.Logger
}

// Recorder keeps the bodies of calls. Nothing that it gets carries a credential: requests
// are those of the CLI without their authorization, answers those of the upstream.
type Recorder interface {
	// Record starts the record of a call, nil when nobody asked for one.
	Record(c Call, request []byte) Recording
}

// Recording takes one answer. Its methods are called from one goroutine at a time and must
// not block on anything slower than a local disk.
type Recording interface {
	Write(p []byte) (int, error) // of the answer's body, as it came
	End(r Result)                // once
}
