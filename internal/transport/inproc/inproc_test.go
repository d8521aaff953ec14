package inproc_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/tholehq/thole/internal/transport/inproc"
)

func TestPipe(t *testing.T) {
	a, b := inproc.Pipe()
	msg := []byte("one")
	if err := a.Write(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
	msg[0] = 'X' // the stream must not keep the slice
	_ = a.Close("")
	if got, err := b.Read(t.Context()); err != nil || string(got) != "one" {
		t.Fatal(string(got), err)
	}
	if _, err := b.Read(t.Context()); err != io.EOF {
		t.Fatal(err)
	}
	if err := b.Write(t.Context(), msg); !errors.Is(err, io.ErrClosedPipe) {
		t.Fatal(err)
	}
	if _, err := a.Read(t.Context()); !errors.Is(err, io.ErrClosedPipe) || a.Close("again") != nil {
		t.Fatal(err)
	}
}

func TestContextAndCloseUnblock(t *testing.T) {
	a, b := inproc.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { _, err := a.Read(ctx); done <- err }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	go func() {
		var err error
		for err == nil {
			err = a.Write(context.Background(), []byte("x"))
		}
		done <- err
	}()
	_ = b.Close("")
	if err := <-done; !errors.Is(err, io.ErrClosedPipe) {
		t.Fatal(err)
	}
}
