package process

import (
	"testing"
)

// A root that ends at once is left to the caller that waits for it, also by a look for
// dead orphans that began before it was started.
func TestReaperLeavesTheRoot(t *testing.T) {
	stop, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case <-stop:
				return
			default:
			}
			trees.Lock()
			for t := range trees.live {
				trees.Unlock()
				t.reap()
				trees.Lock()
				break
			}
			trees.Unlock()
		}
	}()
	for range 20 {
		p, err := Start(Spec{Path: "/bin/true", Dir: "/"})
		if err != nil {
			t.Fatal(err)
		}
		p.Stdout.Close()
		if err := p.Wait(t.Context()); err != nil {
			t.Errorf("true: %v", err)
			break
		}
	}
	close(stop)
	<-gone
}
