package httpapi

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// raw is a connection that a stream has for itself.
type raw struct{ net.Conn }

func (raw) Flush() error { return nil }

// takeOver gives a stream that ends with its connection the connection itself:
// under load most of what a small write costs besides the system call is the
// copying and the framing of net/http. The context ends with the connection.
// Where that cannot be had (HTTP/2), the stream goes on as it is.
func (st *stream) takeOver(ctx context.Context, w http.ResponseWriter) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	h := w.Header().Clone()
	conn, in, err := http.NewResponseController(w).Hijack()
	if err != nil {
		w.WriteHeader(http.StatusOK)
		return ctx, cancel
	}
	h.Set("Connection", "close")
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	st.w, st.ctl = conn, raw{conn}
	var head bytes.Buffer
	head.WriteString("HTTP/1.1 200 OK\r\n")
	_ = h.Write(&head) // a buffer takes everything
	st.buf = append(head.Bytes(), "\r\n"...)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return ctx, func() { cancel(); _ = conn.Close() }
}
