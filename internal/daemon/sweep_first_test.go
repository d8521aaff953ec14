package daemon_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/system"
)

// TestSweptBeforeServed holds the sweep of a starting daemon: as long as it is not
// done, nobody can ask.
func TestSweptBeforeServed(t *testing.T) {
	dir, err := os.MkdirTemp("", "sw")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	home := filepath.Join(dir, "h")
	long := time.Now().Add(-10 * 24 * time.Hour)
	db, err := store.Open(t.Context(), sqldb.Config{Path: filepath.Join(home, "thole.db"), Now: func() time.Time { return long }})
	if err != nil {
		t.Fatal(err)
	}
	m := delivery.New(delivery.Config{Store: db.Delivery(), Limits: delivery.DefaultLimits()})
	job := delivery.Submit{
		ID: thole.NewID[thole.JobID](long), Owner: thole.DefaultOwner, Target: thole.TargetCLI,
		Address: delivery.Address{User: thole.LocalUser, Endpoint: "e", Thread: "t"},
	}
	if _, _, err = m.Submit(t.Context(), thole.LocalActor, job); err == nil {
		_, err = m.Finish(t.Context(), thole.LocalActor, delivery.Finish{Job: job.ID, State: thole.JobReady, Request: "r", Inline: "x"})
	}
	if err == nil {
		long = long.Add(time.Hour)
		_, err = m.Sweep(t.Context())
	}
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}

	cfg, err := config.Load(home, func(string) string { return "" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	sweeping, swept, ready, done := make(chan struct{}), make(chan struct{}), make(chan error, 1), make(chan error, 1)
	run, stop := context.WithCancel(t.Context())
	defer stop()
	began := sync.OnceFunc(func() { close(sweeping) }) // a sweep may come to a batch again
	go func() {
		_, err := system.Run(run, system.Options{
			Config: cfg, Role: "daemon", Demo: true, Ready: func(err error) { ready <- err },
			Hook: func(p sqldb.Point, step string) {
				if p == sqldb.BeforeCommit && step == "delivery.sweep_batch" {
					began()
					<-swept
				}
			},
		})
		done <- err
	}()
	<-sweeping
	select {
	case err := <-ready:
		t.Errorf("it served while the sweep was not done: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	if _, err := os.Stat(daemon.Socket(home)); !os.IsNotExist(err) {
		t.Error("the socket is there while the sweep is not done")
	}
	close(swept)
	if !t.Failed() {
		if err := <-ready; err != nil {
			t.Fatal(err)
		}
		var j wire.Job
		c := &daemonclient.Client{Home: home, NoStart: true}
		if err := c.Call(t.Context(), wire.JobQuery, wire.JobParams{JobID: string(job.ID)}, &j); err != nil {
			t.Fatal(err)
		}
		if j.Batch == nil || j.Batch.CloseReason != string(thole.CloseWindowExhausted) {
			t.Errorf("the first answer tells of %+v", j.Batch)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
