package thread_test

import (
	"context"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/unguarded"
)

// Who may see a thread hears what they may not do to it; for who may not see it, it is
// not there. Lists are of one's own unless everybody's are asked for.
func TestRightsOfOthers(t *testing.T) {
	viewer := thole.Actor{User: "00000000-0000-7000-8000-0000000000a1", Via: "cookie"}
	stranger := thole.Actor{User: "00000000-0000-7000-8000-0000000000a2", Via: "cookie"}
	m, err := thread.New(thread.Config{Store: storetest.SQLite(t).Threads(), Access: func(_ context.Context, a thole.Actor, act authz.Action) (authz.Scope, error) {
		s := authz.Subject{User: a.User, Active: true, Program: a.Via == "system"}
		if a == viewer {
			s.Grants = []authz.Grant{{Role: authz.Viewer, Kind: authz.OnUser, ID: string(thole.LocalUser)}}
		}
		return authz.ScopeOf(s, act), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	th, err := m.Create(t.Context(), thole.LocalActor, thread.Create{Settings: event.Settings{Provider: "test", Profile: thole.ProfileAsk}})
	if err != nil {
		t.Fatal(err)
	}
	name := "taken"
	try := map[string]func(a thole.Actor) error{
		"update": func(a thole.Actor) error {
			_, err := m.Update(t.Context(), a, th.ID, thread.Update{Name: &name})
			return err
		},
		"delete": func(a thole.Actor) error { return m.Delete(t.Context(), a, th.ID) },
		"fork":   func(a thole.Actor) error { _, err := m.Fork(t.Context(), a, th.ID, thread.Fork{}); return err },
		"start": func(a thole.Actor) error {
			_, err := m.StartTurn(t.Context(), a, thread.StartTurn{Thread: th.ID, Input: thole.Text("x")})
			return err
		},
		"enqueue": func(a thole.Actor) error {
			_, err := m.Enqueue(t.Context(), a, thread.Enqueue{Thread: th.ID, Input: thole.Text("x")})
			return err
		},
		"interrupt": func(a thole.Actor) error { return m.Interrupt(t.Context(), a, th.ID, "") },
		"answer": func(a thole.Actor) error {
			_, err := m.Answer(t.Context(), a, th.ID, "ask", event.Answer{})
			return err
		},
		"compact": func(a thole.Actor) error { _, err := m.Compact(t.Context(), a, th.ID, 1); return err },
		"goal":    func(a thole.Actor) error { _, err := m.ClearGoal(t.Context(), a, th.ID); return err },
	}
	for what, do := range try {
		if err := do(viewer); thole.CodeOf(err) != thole.CodeForbidden {
			t.Errorf("a viewer's %s: %v", what, err)
		}
		if err := do(stranger); thole.CodeOf(err) != thole.CodeNotFound {
			t.Errorf("a stranger's %s: %v", what, err)
		}
	}
	if got, err := m.Get(t.Context(), viewer, th.ID); err != nil || got.Name != "" {
		t.Errorf("a viewer reads %q, %v", got.Name, err)
	}
	if _, err := m.Get(t.Context(), stranger, th.ID); thole.CodeOf(err) != thole.CodeNotFound {
		t.Errorf("a stranger reads: %v", err)
	}
	for actor, want := range map[thole.Actor][2]int{thole.LocalActor: {1, 1}, viewer: {0, 1}, stranger: {0, 0}} {
		for i, everybody := range []bool{false, true} {
			page, err := m.List(t.Context(), actor, thread.Filter{Everybody: everybody, PageParams: thread.PageParams{Limit: 10}})
			if err != nil || len(page.Items) != want[i] {
				t.Errorf("%s lists %d, %v; everybody's: %v", actor.User, len(page.Items), err, everybody)
			}
		}
	}
	if _, err := m.Create(t.Context(), viewer, thread.Create{Owner: thole.DefaultOwner}); thole.CodeOf(err) != thole.CodeForbidden {
		t.Errorf("a thread for another: %v", err)
	}
}

// TestStrangersReadNothing of another's thread, unless the check of rights is left out.
func TestStrangersReadNothing(t *testing.T) {
	m, err := thread.New(thread.Config{Store: storetest.SQLite(t).Threads()})
	if err != nil {
		t.Fatal(err)
	}
	th, err := m.Create(t.Context(), thole.LocalActor, thread.Create{Settings: event.Settings{Provider: "test", Profile: thole.ProfileAsk}})
	if err != nil {
		t.Fatal(err)
	}
	stranger := thole.Actor{User: "00000000-0000-7000-8000-0000000000a2", Via: "cookie"}
	name := "taken"
	for what, do := range map[string]func() error{
		"reading":  func() error { _, err := m.Get(t.Context(), stranger, th.ID); return err },
		"the log":  func() error { _, err := m.Events(t.Context(), stranger, th.ID, 0, 10); return err },
		"a change": func() error { _, err := m.Update(t.Context(), stranger, th.ID, thread.Update{Name: &name}); return err },
	} {
		if err := do(); (err == nil) != unguarded.Build {
			t.Errorf("%s by a stranger: %v", what, err)
		}
	}
}

// TestDoing holds an actor to what the request wants, whatever the service is asked for.
func TestDoing(t *testing.T) {
	if unguarded.Build {
		t.Skip("nobody is held to anything")
	}
	reader := thole.Actor{User: "00000000-0000-7000-8000-0000000000a1", Via: "cookie"}
	m, err := thread.New(thread.Config{Store: storetest.SQLite(t).Threads(), Access: func(_ context.Context, a thole.Actor, act authz.Action) (authz.Scope, error) {
		s := authz.Subject{User: a.User, Active: true}
		if a == reader {
			s.Grants = []authz.Grant{{Role: authz.Viewer, Kind: authz.OnUser, ID: string(thole.LocalUser)}}
		}
		return authz.ScopeOf(s, act), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	th, err := m.Create(t.Context(), thole.LocalActor, thread.Create{Settings: event.Settings{Provider: "test", Profile: thole.ProfileAsk}})
	if err != nil {
		t.Fatal(err)
	}
	for action, want := range map[authz.Action]thole.Code{"": "", authz.ViewThread: "", authz.BrowseFiles: "", authz.EditFiles: thole.CodeForbidden, authz.OpenTerminal: thole.CodeForbidden, authz.ManageSelf: thole.CodeForbidden} {
		if _, err := m.Get(authz.Doing(t.Context(), action), reader, th.ID); thole.CodeOf(err) != want {
			t.Errorf("reading in order to %q: %v", action, err)
		}
	}
}
