package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// terminalLog writes records for a person who looks at a terminal: when, how bad, what, and
// why at the end, as errors of commands are written. Programs get log.format text or json.
type terminalLog struct {
	out   io.Writer
	level slog.Leveler
	mu    *sync.Mutex // of out
	group string
	attrs []slog.Attr
}

func newTerminalLog(out io.Writer, level slog.Leveler) *terminalLog {
	return &terminalLog{out: out, level: level, mu: &sync.Mutex{}}
}

// Enabled implements slog.Handler.
func (h *terminalLog) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

// WithGroup implements slog.Handler.
func (h *terminalLog) WithGroup(name string) slog.Handler {
	c := *h
	if name != "" {
		c.group += name + "."
	}
	return &c
}

// WithAttrs implements slog.Handler.
func (h *terminalLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.attrs = append(h.attrs[:len(h.attrs):len(h.attrs)], h.named(attrs)...)
	return &c
}

func (h *terminalLog) named(attrs []slog.Attr) []slog.Attr {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = slog.Attr{Key: h.group + a.Key, Value: a.Value}
	}
	return out
}

// Handle implements slog.Handler.
func (h *terminalLog) Handle(_ context.Context, r slog.Record) error {
	attrs := h.attrs[:len(h.attrs):len(h.attrs)]
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, h.named([]slog.Attr{a})...)
		return true
	})
	var about []string
	var why string
	for _, a := range attrs {
		value := a.Value.Resolve()
		switch said := strings.ReplaceAll(fmt.Sprint(value.Any()), "\n", "\n  | "); {
		case a.Key == "err" && why == "":
			why = ": " + said
		case a.Equal(slog.Attr{}):
		default:
			about = append(about, a.Key+" "+said)
		}
	}
	line := severity(r.Level) + r.Message
	if !r.Time.IsZero() {
		line = r.Time.Format(time.TimeOnly) + " " + line
	}
	if len(about) > 0 {
		line += " (" + strings.Join(about, ", ") + ")"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.out.Write([]byte(line + why + "\n"))
	return err
}

func severity(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "error: "
	case l >= slog.LevelWarn:
		return "warning: "
	case l < slog.LevelInfo:
		return "debug: "
	}
	return ""
}
