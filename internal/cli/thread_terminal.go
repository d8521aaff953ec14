package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/daemon/threads"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/terminal"
)

func newThreadTerminal(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "terminal THREAD", Short: "Open a shell where a thread's agent works",
		Long: "Opens a login shell in the workspace of a thread whose executor runs, inside the same sandbox as the agent\n" +
			"and next to it. Everything that was started in it, nohup or not, ends with it; files stay. The exit code is\n" +
			"the shell's. An executor with an open terminal is not stopped for being idle.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !thole.ValidUUID(args[0]) {
				return thole.Errorf(thole.CodeInvalid, "invalid thread id %q", args[0]).WithHint("thole thread list shows them")
			}
			b, err := env.bridge(cmd.Context())
			if err != nil {
				return err
			}
			own, _ := env.In.(*os.File)
			if b.server != nil {
				return onlyOnServer("thole thread terminal", "log in to the machine of the server")
			}
			owner := executorclient.Dial("unix:"+daemon.Socket(b.home), "")
			conn, err := owner.TerminalAt(cmd.Context(), executors.TerminalPath(thole.ThreadID(args[0])), sizeOf(own))
			if err != nil {
				return err
			}
			defer conn.Close()
			defer context.AfterFunc(cmd.Context(), func() { conn.Close() })()
			if env.person() {
				env.greet(cmd.Context(), args[0])
			}
			defer rawMode(own)()
			defer followSize(own, conn)()
			go typeIn(conn, env.In) // nothing wakes a reader of stdin: it is not waited for
			if err := show(conn, env.rawOut); err != nil {
				if cmd.Context().Err() != nil {
					return cmd.Context().Err()
				}
				return err
			}
			if code := conn.ExitCode(); code != 0 {
				return ExitError(code)
			}
			return nil
		},
	}
}

// greet says where the shell is: its prompt looks like any other.
func (e *Env) greet(ctx context.Context, id string) {
	list, err := e.find(ctx, threads.FindParams{Text: id, Limit: 1})
	if err != nil || len(list) == 0 {
		return
	}
	t := list[0]
	where := t.Dir
	if t.Branch != "" {
		where += ", branch " + t.Branch
	}
	line := "a shell in the box of " + t.Provider + ", " + where + ", thread " + id
	for _, row := range breakRows(line, max(e.width(e.Err)-1, 8)) {
		e.paint(e.Err, dim, func(w io.Writer) { putln(w, row) })
	}
	e.paint(e.Err, dim, func(w io.Writer) { putln(w, "what you start ends with it; files stay; exit or Ctrl-D leaves") })
}

// typeIn passes on what the user says, and its end as a terminal does. That is said
// again and again: who does not listen just then does not hear it.
func typeIn(conn *terminal.Conn, in io.Reader) {
	if _, err := io.Copy(conn, in); err != nil {
		return
	}
	const endOfInput = 4
	for {
		if _, err := conn.Write([]byte{endOfInput}); err != nil {
			return
		}
		time.Sleep(250 * time.Millisecond)
	}
}

// spoolLimit is how much output may wait to be printed before the terminal is asked
// to pause.
const spoolLimit = 256 << 10

// show prints what the terminal says until it ends. It reads on while printing
// takes its time, because a client that does not read is taken for dead.
func show(conn *terminal.Conn, out io.Writer) error {
	var (
		mu     sync.Mutex // guards what follows
		more   = sync.NewCond(&mu)
		spool  []byte
		paused bool
		ended  bool
	)
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		mu.Lock()
		defer mu.Unlock()
		for {
			for len(spool) == 0 && !ended {
				more.Wait()
			}
			if len(spool) == 0 {
				return
			}
			text, resume := spool, paused
			spool, paused = nil, false
			mu.Unlock()
			if resume {
				_ = conn.Resume()
			}
			_, err := out.Write(text)
			if err != nil {
				conn.Close() // nobody looks
			}
			mu.Lock()
		}
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := conn.Read(buf)
		mu.Lock()
		spool = append(spool, buf[:n]...)
		pause := len(spool) > spoolLimit && !paused
		paused = paused || pause
		ended = err != nil
		more.Signal()
		mu.Unlock()
		if pause {
			_ = conn.Pause()
		}
		if err != nil {
			<-printed
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// sizeOf is the size of the user's terminal, or the usual one.
func sizeOf(tty *os.File) terminal.Size {
	if tty != nil {
		if ws, err := unix.IoctlGetWinsize(int(tty.Fd()), unix.TIOCGWINSZ); err == nil && ws.Col > 0 && ws.Row > 0 {
			return terminal.Size{Columns: int(ws.Col), Rows: int(ws.Row)}
		}
	}
	return terminal.DefaultSize
}

// followSize sends each change of the user's terminal until it is stopped.
func followSize(tty *os.File, conn *terminal.Conn) (stop func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-changed:
				_ = conn.Resize(sizeOf(tty))
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(changed)
		close(done)
	}
}

// rawMode has each key of the user's terminal passed on as it is, and gives back
// what undoes that. What is no terminal stays as it is.
func rawMode(tty *os.File) (restore func()) {
	if tty == nil {
		return func() {}
	}
	fd := int(tty.Fd())
	old, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return func() {}
	}
	raw := *old
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if unix.IoctlSetTermios(fd, setTermios, &raw) != nil {
		return func() {}
	}
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, old) }
}
