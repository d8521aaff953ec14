package pipeline

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/testkit/usurper"
)

// intrude is the variable that makes this program the agent's own: it looks for
// executord's token and socket as any process of its user can, waits for a question
// and answers it.
const intrude = "THOLE_TEST_INTRUDE"

func TestMain(m *testing.M) {
	usurper.Main()
	if out := os.Getenv(intrude); out != "" {
		if err := os.WriteFile(out+".begun", nil, 0o600); err != nil {
			panic(err)
		}
		said := "answered"
		if err := answerMyself(); err != nil {
			said = err.Error()
		}
		if err := os.WriteFile(out, []byte(said), 0o600); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

func answerMyself() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	socket, token, err := findExecutord()
	if err != nil {
		return err
	}
	c := executorclient.Dial(socket, token)
	for {
		pending, err := c.Pending(ctx)
		if err != nil {
			return err
		}
		for _, p := range pending {
			_, err := c.Reply(ctx, wire.ReplyRequest{Run: p.Run, Ask: p.Ask.ID, Answer: event.Answer{Decision: event.DecisionAllow}})
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(5 * time.Millisecond) // it waits for another process, not for the test
	}
}

// findExecutord reads the command lines of the processes around.
func findExecutord() (socket, token string, err error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return "", "", err
	}
	for _, path := range lines {
		raw, _ := os.ReadFile(path)
		args := strings.Split(string(raw), "\x00")
		for i := range args[:len(args)-1] {
			switch args[i] {
			case "--listen":
				socket = args[i+1]
			case "--token-file":
				raw, err := os.ReadFile(args[i+1])
				if err != nil {
					return "", "", err
				}
				token = string(raw)
			}
		}
		if socket != "" && token != "" {
			return socket, token, nil
		}
	}
	return "", "", os.ErrNotExist
}

// An agent that looks for executord from inside its box, as it could when token and
// socket were files there, finds nothing to answer its own approval with: the question
// stays the human's.
func TestAnAgentCannotAnswerItsOwnApproval(t *testing.T) {
	t.Parallel()
	r := up(t)
	for _, name := range providers {
		t.Run(name, func(t *testing.T) {
			s := r.session(t, name)
			s.play("sim: say hello")
			info, ok := s.executor(t, s.id)
			if !ok {
				t.Fatal("no executor")
			}
			workspace := filepath.Join(s.home, "x", string(info.ID), "workspace")
			copyProgram(t, filepath.Join(workspace, "intruder"))
			// It goes on after the turn that started it. Agents kill the group of a command that
			// has ended, so the command waits until the intruder has left it.
			s.play("sim: run " + intrude + "=$PWD/intruded setsid ./intruder </dev/null >/dev/null 2>&1 & until test -e intruded.begun; do sleep 0.01; done ;; say started")
			id := s.start("sim: run echo x > granted.txt ;; say done", "ask")
			asked := s.asked(id)
			var said []byte
			poll.Until(t, "the intruder's report", func() (there bool) {
				var err error
				said, err = os.ReadFile(filepath.Join(workspace, "intruded"))
				return err == nil && len(said) > 0
			})
			if string(said) == "answered" {
				t.Fatal("the agent answered its own approval")
			}
			if got := s.get(id); got.Phase != "waiting_human" {
				t.Fatalf("the run does not wait for a human: %+v", got)
			}
			s.reply(asked, map[string]any{"decision": "deny"})
			s.settle(id, "completed")
			if _, err := os.Stat(filepath.Join(workspace, "granted.txt")); err == nil {
				t.Error("what was denied was done")
			}
		})
	}
}

func copyProgram(t *testing.T, to string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, from); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
