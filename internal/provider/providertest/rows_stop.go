package providertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

func stopRows() []Row {
	return []Row{
		together("stop in the middle of text", func(b *Bench) {
			s := b.Open()
			t := b.Start(s, "sim: slow 50ms 5 ;; say "+strings.Repeat("again and ", 2000))
			t.UntilText("again and again")
			t.Stop()
			r := t.Wait()
			b.outcome(r, thole.OutcomeInterrupted)
			if !strings.Contains(r.Text(), "again and again") {
				b.Errorf("the text so far is lost: %q", r.Text())
			}
			b.outcome(b.Play(s, "sim: say next"), thole.OutcomeCompleted)
		}),
		alone("stop in the middle of a command", func(b *Bench) {
			s := b.Open()
			t := b.Start(s, "sim: run "+orphan+" ;; say ok")
			pid := b.pid("pid")
			t.Stop()
			r := t.Wait()
			b.outcome(r, thole.OutcomeInterrupted)
			_ = s.Close()
			b.gone(pid)
		}),
		together("stop in the middle of a question", func(b *Bench) {
			if b.degraded("human_loop", b.Info.Capabilities.HumanLoop) {
				return
			}
			s := b.Open()
			t := b.Start(s, "sim: ask Which? | red | green ;; say ok")
			ask := t.UntilAsk(event.AskInput)
			t.Stop()
			r := t.Wait()
			b.outcome(r, thole.OutcomeInterrupted)
			for _, e := range r.Of(event.AskResolved) {
				if e.AskID == ask.ID && e.Answer != nil {
					b.Errorf("resolved with %+v", e.Answer)
				}
			}
			if err := s.Answer(context.Background(), ask.ID, event.Answer{}); !errors.Is(err, provider.ErrNoTurn) && !errors.Is(err, provider.ErrSettled) {
				b.Errorf("late answer: %v", err)
			}
			b.outcome(b.Play(s, "sim: say next"), thole.OutcomeCompleted)
		}),
		alone("stop of a CLI that dies of it", func(b *Bench) {
			s := b.Open()
			cli, ok := s.(processOf)
			if !ok || b.Harness.NoModel {
				b.Skip("no process of its own")
			}
			t := b.Start(s, "sim: slow 50ms 5 ;; say "+strings.Repeat("again and ", 2000))
			t.Until("the turn's beginning", func(e event.Event) bool { return e.Kind == event.StepStarted || e.Kind == event.ThreadUpdated })
			pid := cli.PID()
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil { // it neither obeys nor answers
				b.Fatalf("hold the CLI: %v", err)
			}
			t.Stop()
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				b.Fatalf("kill the CLI: %v", err)
			}
			b.outcome(t.Wait(), thole.OutcomeInterrupted)
		}),
		together("stop without a turn", func(b *Bench) {
			if err := b.Open().Stop(context.Background()); !errors.Is(err, provider.ErrNoTurn) {
				b.Errorf("stop: %v", err)
			}
		}),
		alone("cancelling the context ends the turn", func(b *Bench) {
			s := b.Open()
			t := b.Start(s, "sim: run "+orphan+" ;; say ok")
			pid := b.pid("pid")
			t.cancel()
			b.outcome(t.Wait(), thole.OutcomeInterrupted)
			_ = s.Close()
			b.gone(pid)
		}),
		alone("close during a turn", func(b *Bench) {
			s := b.Open()
			t := b.Start(s, "sim: run "+orphan+" ;; say ok")
			pid := b.pid("pid")
			if err := s.Close(); err != nil {
				b.Errorf("close: %v", err)
			}
			if r := t.Wait(); r.Outcome() == thole.OutcomeCompleted {
				b.Errorf("outcome %s", r.Outcome())
			}
			b.gone(pid)
			if err := s.Close(); err != nil {
				b.Errorf("second close: %v", err)
			}
		}),
		together("steer", func(b *Bench) {
			s := b.Open()
			t := b.Start(s, "sim: run sleep 2 ;; say old way")
			t.Until("command", func(e event.Event) bool {
				return e.Kind == event.ItemStarted && e.Item.Kind == event.ItemCommand
			})
			err := s.Steer(context.Background(), thole.Text("sim: say new way"), "client-7")
			if b.degraded("steer", b.Info.Capabilities.Steer) {
				if !errors.Is(err, provider.ErrUnsupported) {
					b.Errorf("steer: %v", err)
				}
				t.Wait()
				return
			}
			if err != nil {
				b.Fatalf("steer: %v", err)
			}
			r := t.Wait()
			b.outcome(r, thole.OutcomeCompleted)
			steered := r.Of(event.SteerTaken)
			if len(steered) != 1 || steered[0].Item.ClientID != "client-7" {
				b.Errorf("steered events %+v", steered)
			}
			if !strings.Contains(r.Text(), "new way") {
				b.Errorf("text %q", r.Text())
			}
			if err := s.Steer(context.Background(), thole.Text("late"), ""); !errors.Is(err, provider.ErrNoTurn) {
				b.Errorf("steer without a turn: %v", err)
			}
		}),
	}
}

// orphan is a command whose process leaves its session, as agents' tools do, and
// prints its pid.
const orphan = `setsid sh -c 'echo $$ > pid.tmp; mv pid.tmp pid; exec sleep 300'; sleep 300`

// pid waits for a process id that a command wrote into the workspace.
func (b *Bench) pid(name string) int {
	b.Helper()
	for end := time.Now().Add(rowLimit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if n, err := strconv.Atoi(strings.TrimSpace(b.File(name))); err == nil {
			return n
		}
	}
	b.Fatalf("the command did not start")
	return 0
}

// gone asserts that a process is not running any more.
func (b *Bench) gone(pid int) {
	b.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err == nil && !strings.Contains(string(stat), ") Z ") {
		b.Errorf("process %d was left behind: %s", pid, stat)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}
