package threads

import (
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

func TestNames(t *testing.T) {
	v := view(fold.Thread{ID: "0199c4aa-0000-7000-8000-000000000001", Preview: "Make the tests faster\nplease"})
	if v.Title != "Make the tests faster" || v.Status != StatusIdle {
		t.Errorf("%+v", v)
	}
	for text, want := range map[string]bool{"0199c4": true, "0199C4": true, "make-the": true, "Make The Tests Faster": true, v.Name: true, "faster": false, "c4aa": false} {
		if v.Means(text) != want {
			t.Errorf("%q means it: %v", text, !want)
		}
	}
	if b := view(fold.Thread{Name: "x", Files: thole.Source{Branch: "thole/on-a-branch-abcd"}}); b.Name != "on-a-branch-abcd" {
		t.Errorf("the name of a thread on a branch is %q", b.Name)
	}
}

// Of all that a thread is, what waits for a person comes first.
func TestStatusWords(t *testing.T) {
	for _, c := range []struct {
		s    event.Status
		want string
	}{
		{event.Status{}, StatusIdle}, {event.Status{Loaded: true}, StatusIdle}, {event.Status{SystemError: true}, StatusFailed}, {event.Status{Active: true, Loaded: true}, StatusRunning},
		{event.Status{Active: true, WaitingOnApproval: true}, StatusWaiting}, {event.Status{Active: true, WaitingOnInput: true}, StatusWaiting},
	} {
		if got, _ := Status(c.s); got != c.want {
			t.Errorf("%+v is %q, want %q", c.s, got, c.want)
		}
	}
}

func TestWithin(t *testing.T) {
	here := func(dir string) thole.Source { return thole.Source{Kind: thole.SourceHere, Dir: dir} }
	for _, c := range []struct {
		f    thole.Source
		want bool
	}{
		{here("/r"), true}, {here("/r/sub"), true}, {here("/rx"), false}, {here("/"), false}, {thole.Source{Kind: thole.SourceBranch, Repo: "/r"}, true},
		{thole.Source{Kind: thole.SourceBranch, Repo: "/r/sub"}, false}, {thole.Source{}, false},
	} {
		if within(c.f, "/r") != c.want {
			t.Errorf("%+v is within: %v", c.f, !c.want)
		}
	}
}
