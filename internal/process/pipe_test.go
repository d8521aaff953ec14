package process

import (
	"bytes"
	"io"
	"testing"
	"time"
)

// TestPipe: of a flood nothing is lost or turned around, and it is read in far fewer
// pieces than it was written in.
func TestPipe(t *testing.T) {
	r, w, err := newPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const lines = 20_000
	word := []byte("a line of many words that a CLI says without any pause at all\n")
	go func() {
		defer w.Close()
		for range lines {
			if _, err := w.Write(word); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	g := Gather(r)
	var all []byte
	reads := 0
	for buf := make([]byte, 64<<10); ; reads++ {
		n, err := g.Read(buf)
		all = append(all, buf[:n]...)
		if err == io.EOF {
			break
		}
		if err != nil || n == 0 {
			t.Fatalf("read %d: %d bytes, %v", reads, n, err)
		}
	}
	if !bytes.Equal(all, bytes.Repeat(word, lines)) || reads > lines/10 {
		t.Errorf("%d bytes in %d reads", len(all), reads)
	}
}

// TestPipeEnds: closing it, or its deadline, ends a reader that waits and one that
// naps.
func TestPipeEnds(t *testing.T) {
	for name, end := range map[string]func(*pipeReader){
		"close":    func(r *pipeReader) { r.Close() },
		"deadline": func(r *pipeReader) { _ = r.SetReadDeadline(time.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			r, w, err := newPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			defer r.Close()
			heard, ended := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(ended)
				if _, err := w.Write([]byte("x")); err != nil {
					t.Error(err)
				}
				buf := make([]byte, 8)
				if n, err := r.Read(buf); n != 1 || err != nil {
					t.Errorf("%d bytes, %v", n, err)
				}
				close(heard)
				if n, err := r.Read(buf); n != 0 || err != io.EOF {
					t.Errorf("%d bytes, %v", n, err)
				}
				r.nap(time.Hour)
			}()
			<-heard
			end(r)
			<-ended
		})
	}
}
