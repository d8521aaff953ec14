package local_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor"
)

// Listing takes nothing away: neither from a caller that creates, nor files
// whose label another process deleted.
func TestListTakesNothingAway(t *testing.T) {
	b := setup(t, "")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 300 {
			if _, err := b.driver.List(b.Context()); err != nil {
				b.Error(err)
			}
		}
	}()
	for i := 0; ; i++ {
		id := thole.NewID[thole.ExecutorID](time.Now())
		if err := b.driver.Create(b.Context(), executor.Spec{ID: id, Thread: "thread"}); err != nil {
			t.Fatal(err)
		}
		if info, err := b.driver.Inspect(b.Context(), id); err != nil || info.State != executor.Stopped {
			t.Fatalf("executor %d is %v, %v", i, info.State, err)
		}
		if err := b.driver.Remove(b.Context(), id); err != nil {
			t.Fatal(err)
		}
		select {
		case <-done:
		default:
			continue
		}
		break
	}
	kept := filepath.Join(b.root, string(b.id), "workspace", "file")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(b.root, string(b.id), "spec.json")); err != nil {
		t.Fatal(err)
	}
	if list, err := b.driver.List(t.Context()); err != nil || len(list) != 0 {
		t.Fatal(list, err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}

// Executors that take a call and never answer are asked side by side, so that a
// server does not begin later for each of them.
func TestHungExecutorsAreAskedTogether(t *testing.T) {
	b := setup(t, "")
	ids := []thole.ExecutorID{b.id}
	for range 2 {
		id := thole.NewID[thole.ExecutorID](time.Now())
		if err := b.driver.Create(t.Context(), executor.Spec{ID: id, Thread: "thread"}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	var asked atomic.Int32
	all := make(chan struct{})
	for _, id := range ids {
		own := filepath.Join(b.root, string(id), "own")
		err := os.MkdirAll(own, 0o700)
		if err == nil {
			err = os.WriteFile(filepath.Join(own, "token"), []byte("token"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		ln, err := net.Listen("unix", filepath.Join(own, "d.sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		go func() {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			if asked.Add(1) == int32(len(ids)) {
				close(all)
			}
			left := make(chan struct{})
			go func() { defer close(left); _, _ = io.Copy(io.Discard, conn) }()
			select {
			case <-all:
			case <-left:
				t.Error("one was given up before the others were asked")
			}
			_ = conn.Close()
		}()
	}
	if _, err := b.driver.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != int32(len(ids)) {
		t.Errorf("%d were asked", n)
	}
}
