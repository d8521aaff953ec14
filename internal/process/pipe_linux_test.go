package process

import (
	"io"
	"testing"
)

// TestPipeIsClosedAtItsEnd: who reads to the end leaves no file open.
func TestPipeIsClosedAtItsEnd(t *testing.T) {
	r, w, err := newPipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = w.Write([]byte("the end"))
		w.Close()
	}()
	if all, err := io.ReadAll(r); string(all) != "the end" || err != nil {
		t.Errorf("%q, %v", all, err)
	}
	if r.pipe != -1 || r.timer != -1 {
		t.Error("it is open")
	}
}
