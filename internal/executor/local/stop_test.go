package local_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/testkit/forks"
)

// A stop reaches whatever the agent started, in a session of its own or not, also
// when executord died without a word before it.
func TestStopReachesEveryDescendant(t *testing.T) {
	each(t, func(t *testing.T, bwrap string) {
		b := setup(t, bwrap)
		info := b.start()
		// A number of seconds nobody else sleeps, to find the process by.
		mark := fmt.Sprint(80000 + os.Getpid()%9999)
		sleeping := func() bool {
			out, err := exec.Command("ps", "-eo", "args").Output()
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(string(out), "sleep "+mark)
		}
		client := executorclient.Dial(info.Endpoint, info.Token)
		defer client.Close()
		req := wire.RunRequest{
			Turn: provider.Turn{ID: thole.NewID[thole.TurnID](time.Now()), Input: thole.Text("sim: run setsid sleep " + mark + " & echo up; wait")},
			For:  thole.NewID[thole.TurnID](time.Now()), Thread: "thread", Provider: "test", Session: wire.SessionSettings{Settings: event.Settings{Profile: thole.ProfileFull}},
		}
		if _, err := client.Run(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		await(t, sleeping)
		out, err := exec.Command("pgrep", "-f", "executor serve .*"+b.root).Output()
		if bwrap == "" && err != nil {
			t.Fatal("find executord:", err)
		}
		for _, pid := range strings.Fields(string(out)) {
			if n, err := strconv.Atoi(pid); err == nil && bwrap == "" {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
		if bwrap == "" {
			await(t, func() bool {
				info, err := b.driver.Inspect(t.Context(), b.id)
				return err == nil && info.State == executor.Stopped
			})
			if !sleeping() {
				t.Fatal("the stray ended by itself: nothing is proven")
			}
		}
		if err := b.driver.Stop(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
		if sleeping() {
			t.Fatal("a process of the executor outlived its stop")
		}
	})
}

// A stop that ends a person's command is not recorded as the command's own end.
func TestAStopIsNoEndOfACommand(t *testing.T) {
	each(t, func(t *testing.T, bwrap string) {
		b := setup(t, bwrap)
		for range 3 {
			info := b.start()
			client := executorclient.Dial(info.Endpoint, info.Token)
			req := b.request("", thole.ProfileFull)
			req.Turn.Input = thole.Shell("echo up; exec sleep 600")
			if _, err := client.Run(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			up := errors.New("up")
			err := client.Events(t.Context(), req.Turn.ID, 0, func(batch []wire.LogEvent) error {
				for _, ev := range batch {
					if strings.Contains(ev.Event.Delta, "up") {
						return up
					}
				}
				return nil
			})
			if !errors.Is(err, up) {
				t.Fatal(err)
			}
			client.Close()
			if err := b.driver.Stop(t.Context(), b.id); err != nil {
				t.Fatal(err)
			}
			info = b.start()
			client = executorclient.Dial(info.Endpoint, info.Token)
			err = client.Events(t.Context(), req.Turn.ID, 0, func(batch []wire.LogEvent) error {
				for _, ev := range batch {
					if ev.Event.Kind == event.TurnEnded && ev.Event.Outcome == thole.OutcomeCompleted || ev.Event.Kind == event.ItemCompleted && ev.Event.Item.Command.ExitCode != nil {
						t.Errorf("the log says that the command ended: %+v", ev.Event)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			client.Close()
		}
	})
}

// A stop ends a chain of forks, in order and when executord is dead and nothing
// knows the links but the marker.
func TestStopEndsAChainOfForks(t *testing.T) {
	for name, killed := range map[string]bool{"in order": false, "executord is dead": true} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, "")
			info := b.start()
			client := executorclient.Dial(info.Endpoint, info.Token)
			defer client.Close()
			chain := forks.New(t)
			req := wire.RunRequest{
				Turn: provider.Turn{ID: thole.NewID[thole.TurnID](time.Now()), Input: thole.Text("sim: run " + chain.Command() + " wait; sleep 600")},
				For:  thole.NewID[thole.TurnID](time.Now()), Thread: "thread", Provider: "test", Session: wire.SessionSettings{Settings: event.Settings{Profile: thole.ProfileFull}},
			}
			if _, err := client.Run(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			chain.Await(t)
			if killed {
				if err := syscall.Kill(b.pid(), syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.driver.Stop(t.Context(), b.id); err != nil {
				t.Fatal(err)
			}
			chain.Gone(t)
		})
	}
}
