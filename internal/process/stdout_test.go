package process

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"
)

func TestStdoutIsClosedAtItsEnd(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = w.WriteString("the end")
		w.Close()
	}()
	if all, err := io.ReadAll(&stdout{r}); string(all) != "the end" || err != nil {
		t.Errorf("%q, %v", all, err)
	}
	if err := r.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("it was open: %v", err)
	}
}

// TestStdoutEnds: closing it, or its deadline, ends a reader that waits.
func TestStdoutEnds(t *testing.T) {
	for name, end := range map[string]func(*os.File){
		"close":    func(r *os.File) { r.Close() },
		"deadline": func(r *os.File) { _ = r.SetReadDeadline(time.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			defer r.Close()
			first, ended := make(chan struct{}), make(chan error)
			go func() {
				buf := make([]byte, 8)
				_, err := (&stdout{r}).Read(buf)
				close(first)
				if err == nil {
					_, err = (&stdout{r}).Read(buf)
				}
				ended <- err
			}()
			if _, err := w.WriteString("x"); err != nil {
				t.Fatal(err)
			}
			<-first
			end(r)
			if err := <-ended; err != io.EOF {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}
