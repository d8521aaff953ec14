package providertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

func toolRows() []Row {
	return []Row{
		together("command with output", func(b *Bench) {
			r := b.Play(b.Open(), "sim: run printf 'alpha\\tbeta gamma' && pwd ;; say got %tool%")
			b.outcome(r, thole.OutcomeCompleted)
			c := b.command(r, 0)
			if !strings.Contains(c.Command.Output, "beta gamma") || c.State != event.StateCompleted {
				b.Errorf("item %+v command %+v", c, c.Command)
			}
			if dir, _ := filepath.EvalSymlinks(b.Config.Dir); !strings.Contains(c.Command.Output, dir) {
				b.Errorf("ran outside the workspace: %q", c.Command.Output)
			}
			if c.Command.ExitCode == nil || *c.Command.ExitCode != 0 {
				b.Errorf("exit code %v", c.Command.ExitCode)
			}
			if !strings.Contains(c.Command.Line, "printf") {
				b.Errorf("command line %q", c.Command.Line)
			}
			if !strings.Contains(r.Text(), "beta gamma") {
				b.Errorf("the model did not get the output: %q", r.Text())
			}
		}),
		together("command that fails", func(b *Bench) {
			r := b.Play(b.Open(), "sim: run echo oops && exit 7 ;; say after")
			b.outcome(r, thole.OutcomeCompleted)
			c := b.command(r, 0)
			if c.State != event.StateFailed || c.Command.ExitCode == nil || *c.Command.ExitCode != 7 {
				b.Errorf("state %s, command %+v", c.State, c.Command)
			}
		}),
		together("large output is bounded", func(b *Bench) {
			r := b.Play(b.Open(), "sim: run seq -f 'line %.0f of many' 1 60000 ;; say after")
			b.outcome(r, thole.OutcomeCompleted)
			if c := b.command(r, 0); len(c.Command.Output) > provider.OutputLimit {
				b.Errorf("kept %d bytes", len(c.Command.Output))
			}
		}),
		together("file edit with diff", func(b *Bench) {
			s := b.Open(Profile(thole.ProfileFull))
			r := b.Play(s, "sim: write notes.txt first line\\n ;; say ok")
			b.outcome(r, thole.OutcomeCompleted)
			if made := r.Items(event.ItemFileChange); len(made) != 1 || len(made[0].Changes) != 1 || made[0].Changes[0].Kind != "add" || !strings.Contains(made[0].Changes[0].Diff, "+first line") {
				b.Errorf("a new file: %+v; events:\n%s", made, r)
			}
			if got := b.File("notes.txt"); !strings.HasPrefix(got, "first line") {
				b.Fatalf("notes.txt holds %q", got)
			}
			// claude and opencode want to have read a file before they edit it.
			r = b.Play(s, "sim: read notes.txt ;; edit notes.txt first line => second line ;; say ok")
			b.outcome(r, thole.OutcomeCompleted)
			if got := b.File("notes.txt"); !strings.HasPrefix(got, "second line") {
				b.Errorf("notes.txt holds %q", got)
			}
			items := r.Items(event.ItemFileChange)
			if len(items) != 1 || len(items[0].Changes) != 1 || items[0].State != event.StateCompleted {
				b.Fatalf("file changes %+v; events:\n%s", items, r)
			}
			c := items[0].Changes[0]
			if filepath.Base(c.Path) != "notes.txt" || c.Kind != "update" || !strings.Contains(c.Diff, "-first line") || !strings.Contains(c.Diff, "+second line") {
				b.Errorf("change %+v", c)
			}
		}),
		together("todos through all states", func(b *Bench) {
			r := b.Play(b.Open(), "sim: todo [~] read | write | test ;; todo [x] read | [~] write | test ;; todo [x] read | [x] write | [x] test ;; say ok")
			b.outcome(r, thole.OutcomeCompleted)
			if b.degraded("todo_stream", b.Info.Capabilities.TodoStream) {
				return
			}
			if got, want := todoStates(r), "doing todo todo, done doing todo, done done done"; got != want {
				b.Errorf("todos %q, want %q", got, want)
			}
		}),
		alone("workspace survives odd names", func(b *Bench) {
			b.Config.Dir = filepath.Join(b.Config.Dir, "a b'c", "ü")
			if err := os.MkdirAll(b.Config.Dir, 0o755); err != nil {
				b.Fatal(err)
			}
			r := b.Play(b.Open(), "sim: run echo x > out ;; say ok")
			b.outcome(r, thole.OutcomeCompleted)
			if b.File("out") != "x\n" {
				b.Errorf("no file in the workspace; events:\n%s", r)
			}
		}),
	}
}

// command returns the n-th command item.
func (b *Bench) command(r Record, n int) event.Item {
	b.Helper()
	items := r.Items(event.ItemCommand)
	if len(items) <= n {
		b.Fatalf("%d command items, want more than %d; events:\n%s", len(items), n, r)
	}
	return items[n]
}

// todoStates folds snapshots and updates and lists each state of the list.
func todoStates(r Record) string {
	list := map[int]event.Todo{}
	var shots []string
	for _, e := range r {
		switch e.Kind {
		case event.TodoSnapshot:
			clear(list)
		case event.TodoUpdate:
		default:
			continue
		}
		for _, t := range e.Todos {
			list[t.Order] = t
		}
		var states []string
		for i := range len(list) {
			states = append(states, string(list[i].State))
		}
		shot := strings.Join(states, " ")
		if len(shots) == 0 || shots[len(shots)-1] != shot {
			shots = append(shots, shot)
		}
	}
	return fmt.Sprint(strings.Join(shots, ", "))
}
