package codex

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/tholehq/thole/internal/jsonrpc"
)

// dying ends its reader in the middle of a write, which then fails.
type dying struct{ writing, ended chan struct{} }

func (d dying) Read(context.Context) ([]byte, error) { <-d.writing; return nil, io.EOF }
func (d dying) Close(string) error                   { return nil }
func (d dying) Write(context.Context, []byte) error {
	close(d.writing)
	<-d.ended
	return errors.New("broken pipe")
}

// Who is told twice that a request was lost may wait for ever to pass it on.
func TestALostRequestIsToldOnce(t *testing.T) {
	d := dying{make(chan struct{}), make(chan struct{})}
	c := newClient(d)
	told := make(chan error, 2)
	go c.read(func(*jsonrpc.Message) {})
	err := c.Go("turn/start", nil, func(_ json.RawMessage, err error) {
		told <- err
		close(d.ended)
	})
	if err != nil || !errors.Is(<-told, errGone) {
		t.Errorf("told again: %v", err)
	}
	<-c.done
}
