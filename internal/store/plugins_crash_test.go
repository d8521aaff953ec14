package store_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/plugin"
	"github.com/tholehq/thole/internal/procid"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/crash"
)

// hosts is a store with one instance of a plugin and two leases of it.
type hosts struct{ *store.DB }

func openHosts(dir string, hook sqldb.Hook) (hosts, error) {
	db, err := storetest.OpenAt(context.Background(), sqldb.Config{Path: filepath.Join(dir, "thole.db"), Hook: hook})
	return hosts{db}, err
}

func (h hosts) State() (string, error) {
	return crash.Rows(h.DB, "plugin_instances", "app_server_leases")
}

func instance(pid int) plugin.Instance {
	return plugin.Instance{User: "u", Plugin: "p", ID: "i", Release: "1", Process: procid.Identity{PID: pid, Boot: "b", Start: "9"}, HelloAt: time.UnixMilli(1_700_000_000_000).UTC()}
}

func appServerLease(id string) plugin.Lease {
	return plugin.Lease{ID: id, User: "u", Plugin: "p", Instance: "i", Endpoint: "/h", Thread: "t", Attachment: "a", Until: time.UnixMilli(1_700_000_900_000).UTC()}
}

func alive(procid.Identity) bool { return false }
func dead(procid.Identity) bool  { return true }

func (h hosts) put(pid int, gone func(procid.Identity) bool) error {
	ok, err := h.Plugins().PutInstance(context.Background(), instance(pid), gone)
	if err == nil && !ok {
		err = errors.New("another process speaks for the instance")
	}
	return err
}

func (h hosts) Acts() []crash.Act {
	ctx, s := context.Background(), h.Plugins()
	return []crash.Act{
		{Name: "hello", Do: func() error { return h.put(1, alive) }},
		{Name: "ensure", Do: func() error { return s.PutLease(ctx, appServerLease("l1")) }},
		{Name: "ensure another", Do: func() error { return s.PutLease(ctx, appServerLease("l2")) }},
		{Name: "stop", Do: func() error { return s.DropLease(ctx, "l1") }},
		{Name: "take over", Do: func() error { return h.put(2, dead) }},
		{Name: "forget", Do: func() error { return s.ForgetInstance(ctx, instance(2)) }},
	}
}

// TestPluginsSurviveAKill: an instance has one process, and none that lives is replaced; a
// process that is forgotten leaves no lease, and one that was replaced is forgotten by nobody
// who knew the old one.
func TestPluginsSurviveAKill(t *testing.T) {
	crash.Acts(t, openHosts, func(t *testing.T, h hosts, done []string) {
		ctx, s := context.Background(), h.Plugins()
		there, leases := slices.Contains(done, "hello") && !slices.Contains(done, "forget"), 0
		for _, what := range []string{"ensure", "ensure another"} {
			if slices.Contains(done, what) && !slices.Contains(done, "forget") {
				leases++
			}
		}
		if slices.Contains(done, "stop") && there {
			leases--
		}
		list, err := s.Instances(ctx)
		if err != nil || len(list) == 1 != there {
			t.Fatalf("after %v: %+v, %v", done, list, err)
		}
		if have, err := s.Leases(ctx); err != nil || len(have) != leases {
			t.Errorf("after %v: %+v, %v", done, have, err)
		}
		if !there {
			return
		}
		if err := h.put(3, alive); err == nil {
			t.Error("a process that lives was replaced")
		}
		if err := s.ForgetInstance(ctx, instance(4)); err != nil {
			t.Error(err)
		}
		if again, err := s.Instances(ctx); err != nil || !slices.Equal(again, list) {
			t.Errorf("%+v, %v, before %+v", again, err, list)
		}
	})
}
