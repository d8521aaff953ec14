package provider

import (
	"context"
	"errors"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/process"
)

// Shell runs the command of a started item, emits its output as it comes, both
// streams as one, and completes the item. It returns what was kept of the output;
// an error means that ctx ended the command, and then the item is left to End. Each of
// exits is called with the exit code of a command that ended by itself.
func (e *Emitter) Shell(ctx context.Context, item event.Item, env map[string]string, in *box.Box, exits ...func(code int)) (string, error) {
	began := time.Now()
	cmd := *item.Command
	item.Command = &cmd
	finish := func(code int, text string) {
		cmd.ExitCode, cmd.DurationMS = &code, time.Since(began).Milliseconds()
		if code != 0 {
			item.State = event.StateFailed
		}
		e.Delta(item.ID, event.StreamOutput, text)
		e.Complete(item)
		for _, exit := range exits {
			exit(code)
		}
	}
	p, err := process.Start(process.Spec{Path: "/bin/sh", Args: []string{"-c", "exec 2>&1\n" + cmd.Line + "\n"}, Dir: cmd.Dir, Env: env, Box: in})
	if err != nil {
		finish(-1, err.Error())
		return err.Error(), nil
	}
	defer p.Stdout.Close()
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	p.Stdin.Close()
	var kept Output
	buf, half := make([]byte, 32<<10), 0 // bytes of a rune that is not whole yet
	for {
		n, err := p.Stdout.Read(buf[half:])
		n, half = half+n, 0
		for err == nil && half < n && cutRune(buf[:n-half]) {
			half++
		}
		text := strings.ToValidUTF8(string(buf[:n-half]), "\uFFFD")
		copy(buf, buf[n-half:n])
		kept.Write(text)
		e.Delta(item.ID, event.StreamOutput, text)
		if err != nil {
			break
		}
	}
	err = p.Wait(context.Background())
	code := 0
	var exit *process.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	finish(code, "")
	text, _ := kept.Text()
	return text, nil
}

// RunShell takes a shell command turn to its end. No session is needed:
// the command is the user's, not the agent's.
func RunShell(ctx context.Context, turn thole.TurnID, line, dir string, env map[string]string, in *box.Box, emit func(event.Event)) {
	em := NewEmitter(turn, emit)
	item := event.Item{ID: em.ItemID("shell"), Kind: event.ItemCommand, Command: &event.Command{Line: line, Dir: dir, User: true}}
	em.Start(item)
	ended := Ended{Outcome: thole.OutcomeCompleted}
	if _, err := em.Shell(ctx, item, env, in); err != nil {
		ended.Outcome = thole.OutcomeInterrupted
	}
	em.End(ended)
}
