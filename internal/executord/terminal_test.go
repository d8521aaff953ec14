package executord_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/terminal"
	"github.com/tholehq/thole/internal/executord/terminal/shell"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// tty is a terminal under test, and what it has said and was not expected yet.
type tty struct {
	*testing.T
	conn *terminal.Conn
	said []byte
}

func openTerminal(t *testing.T, c *executorclient.Client) *tty {
	t.Helper()
	conn, err := c.Terminal(t.Context(), terminal.DefaultSize)
	if err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(2*time.Minute, func() { conn.Close() })
	t.Cleanup(func() {
		stuck.Stop()
		conn.Close()
	})
	return &tty{T: t, conn: conn}
}

func (x *tty) say(line string) {
	x.Helper()
	if _, err := io.WriteString(x.conn, line); err != nil {
		x.Fatal(err)
	}
}

// expect reads until the terminal has said something, and returns what was before it. The shell echoes what it is
// typed, so that commands spell their answers differently: echo o”k.
func (x *tty) expect(want string) (before string) {
	x.Helper()
	buf := make([]byte, 4096)
	for {
		if before, after, ok := bytes.Cut(x.said, []byte(want)); ok {
			x.said = after
			return string(before)
		}
		n, err := x.conn.Read(buf)
		if err != nil {
			x.Errorf("%v; waited for %q, was told %q", err, want, x.said)
			runtime.Goexit()
		}
		x.said = append(x.said, buf[:n]...)
	}
}

// ends reads to the end and returns the exit code.
func (x *tty) ends() int {
	x.Helper()
	if _, err := io.Copy(io.Discard, readOnly{x.conn}); err != nil {
		x.Fatal(err)
	}
	return x.conn.ExitCode()
}

type readOnly struct{ io.Reader }

// none waits until no process has a word in its arguments.
func none(t *testing.T, word string) {
	t.Helper()
	poll.Until(t, "the end of "+word, func() bool { return !runs(t, word) })
}

func runs(t *testing.T, word string) bool {
	t.Helper()
	out, err := exec.Command("ps", "-eo", "args").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(out), word)
}

// seconds is a number nobody else sleeps, to find a process by.
func seconds() string { return strconv.FormatInt(1e6+time.Now().UnixNano()%1e9, 10) }

func open(t *testing.T, c *executorclient.Client) int {
	t.Helper()
	st, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st.Terminals
}

func TestATerminalIsAShellInTheWorkspace(t *testing.T) {
	dir := home(t)
	t.Setenv("SOME_SECRET", "of whoever started executord")
	c, _ := serve(t, dir)
	x := openTerminal(t, c)
	if n := open(t, c); n != 1 {
		t.Errorf("%d terminals are open", n)
	}
	x.say("echo at=$PWD=$HOME=$TERM=${SOME_SECRET-none}= && tty && shopt -q login_shell && echo lo''gin\n")
	x.expect("at=" + dir + "/workspace=" + dir + "/home=xterm-256color=none=")
	x.expect("/dev/pts/")
	x.expect("login")
	x.say("stty size; echo o''k\n")
	x.expect("24 80")
	x.expect("ok")
	if err := x.conn.Resize(terminal.Size{Columns: 132, Rows: 43}); err != nil {
		t.Fatal(err)
	}
	x.say("stty size; echo o''k\n")
	x.expect("43 132")
	x.expect("ok")

	x.say("sh -c 'echo rea\"\"dy; exec sleep 1000'\n")
	x.expect("ready")
	x.say("\x03")
	x.say("echo rc=$?=\n")
	x.expect("rc=130=")

	// Bytes are bytes, in both directions.
	x.say(`printf '<\377\376\001\000>'` + "\n")
	x.expect("<\xff\xfe\x01\x00>")
	x.say("stty -echo; echo rea''dy; head -n 1 | od -An -tx1\n")
	x.expect("ready\r\n")
	x.say("\xff\xfe\xc3\n")
	x.expect("ff fe c3 0a")

	x.say("exit 7\n")
	if code := x.ends(); code != 7 {
		t.Errorf("exit code %d", code)
	}
	poll.Until(t, "a count of 0", func() bool { return open(t, c) == 0 })

	x = openTerminal(t, c)
	x.say("kill -KILL $$\n")
	if code := x.ends(); code != 128+9 {
		t.Errorf("a killed shell has exit code %d", code)
	}
}

// A client that reads nothing stops the program, and loses nothing.
func TestAFloodWaitsForItsReader(t *testing.T) {
	const size, most = 40_000_000, 10_000_000 // in between lie the buffers of a socket
	c, _ := serve(t, home(t))
	x := openTerminal(t, c)
	x.say(fmt.Sprintf("echo pi''d=$$=; exec head -c %d /dev/zero\n", size))
	x.expect("pid=")
	pid := x.expect("=")
	written := func() (n int) {
		text, err := os.ReadFile("/proc/" + pid + "/io")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "wchar: ")
		fmt.Sscan(rest, &n)
		return n
	}
	same, last := 0, -1
	poll.Until(t, "a program that waits", func() bool {
		now := written()
		if same++; now != last || now < chunkOfZeros {
			same, last = 0, now
		}
		return same > 8
	})
	if last > most {
		t.Errorf("%d bytes were taken from the program while nobody read them", last)
	}
	zeros := bytes.Count(x.said, []byte{0})
	buf := make([]byte, 64<<10)
	for {
		n, err := x.conn.Read(buf)
		zeros += bytes.Count(buf[:n], []byte{0})
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if zeros != size {
		t.Errorf("%d bytes came of %d", zeros, size)
	}
}

const chunkOfZeros = 64 << 10

// Between pause and resume nothing comes, and nothing is lost.
func TestPause(t *testing.T) {
	c, _ := serve(t, home(t))
	x := openTerminal(t, c)
	x.say("stty -echo; echo rea''dy; exec cat\n")
	x.expect("ready\r\n")
	if err := x.conn.Pause(); err != nil {
		t.Fatal(err)
	}
	x.say("held\n")
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		x.expect("held")
	}()
	select {
	case <-heard:
		t.Error("output came in a pause")
	case <-time.After(200 * time.Millisecond): // long enough to see it where pausing does nothing
	}
	if err := x.conn.Resume(); err != nil {
		t.Fatal(err)
	}
	<-heard
}

// With the connection goes everything the shell started, however it tried to stay.
func TestNothingOutlivesTheConnection(t *testing.T) {
	for name, leave := range map[string]func(x *tty, stop func()){
		"client gone":     func(x *tty, _ func()) { x.conn.Close() },
		"shell exits":     func(x *tty, _ func()) { x.say("exit\n") },
		"executord stops": func(_ *tty, stop func()) { stop() },
		"deaf to a hang-up": func(x *tty, _ func()) {
			x.say("trap '' HUP; echo de''af; sleep 1000\n")
			x.expect("deaf")
			x.conn.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, stop := serve(t, home(t))
			x := openTerminal(t, c)
			n := seconds()
			x.say(fmt.Sprintf("nohup sleep %[1]s & setsid sleep %[1]s & (env -i setsid sleep %[1]s &) ; echo o''k\n", n))
			x.expect("ok")
			poll.Until(t, "the sleepers", func() bool { return runs(t, "sleep "+n) })
			leave(x, stop)
			none(t, "sleep "+n)
		})
	}
}

func TestAStoppingExecutordSaysSo(t *testing.T) {
	c, stop := serve(t, home(t))
	x := openTerminal(t, c)
	x.say("echo o''k\n")
	x.expect("ok")
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	_, err := io.Copy(io.Discard, readOnly{x.conn})
	if thole.CodeOf(err) != thole.CodeUnavailable || !strings.Contains(err.Error(), "the executor stops") {
		t.Errorf("the client was told %v", err)
	}
	<-stopped
}

func TestTerminalRefusals(t *testing.T) {
	dir := home(t)
	c, _ := serveWith(t, dir, shell.Config{Max: 2})
	wrong := executorclient.Dial("unix:"+dir+"/d.sock", "wrong")
	if _, err := wrong.Terminal(t.Context(), terminal.DefaultSize); thole.CodeOf(err) != thole.CodeUnauthorized {
		t.Errorf("wrong token: %v", err)
	}
	if _, err := c.Terminal(t.Context(), terminal.Size{}); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("no size: %v", err)
	}
	first := openTerminal(t, c)
	openTerminal(t, c)
	if _, err := c.Terminal(t.Context(), terminal.DefaultSize); thole.CodeOf(err) != thole.CodeOverloaded || thole.HintOf(err) == "" {
		t.Errorf("a third of two terminals: %v", err)
	}
	first.conn.Close()
	poll.Until(t, "room", func() bool { return open(t, c) == 1 })
	x := openTerminal(t, c)
	x.say("echo o''k\n")
	x.expect("ok")
	x.conn.Close()
	poll.Until(t, "room", func() bool { return open(t, c) == 1 })

	for name, r := range map[string]struct {
		o     websocket.DialOptions
		first string
		want  string
	}{
		"no subprotocol":    {want: "expected handshake response status code 101 but got 400"},
		"a foreign page":    {o: websocket.DialOptions{Subprotocols: []string{"tty"}, HTTPHeader: http.Header{"Origin": {"https://elsewhere.example"}}}, want: "got 403"},
		"no first message":  {o: websocket.DialOptions{Subprotocols: []string{"tty"}}, first: "0ls", want: "the first message must be a JSON object"},
		"a size of nothing": {o: websocket.DialOptions{Subprotocols: []string{"tty"}}, first: `{"columns":1}`, want: "a terminal has 1 to 4096 columns and rows"},
		"unknown command":   {o: websocket.DialOptions{Subprotocols: []string{"tty"}}, first: "{}", want: `unknown command '9'`},
	} {
		poll.Until(t, "room", func() bool { return open(t, c) == 1 })
		err := rudely(t, dir, r.o, r.first)
		if err == nil || !strings.Contains(err.Error(), r.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	poll.Until(t, "room", func() bool { return open(t, c) == 1 })
}

func unixTransport(dir string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", dir+"/d.sock")
	}}
}

// raw connects without our own client.
func raw(t *testing.T, dir string, o websocket.DialOptions) (*websocket.Conn, error) {
	t.Helper()
	tr := unixTransport(dir)
	o.HTTPClient = &http.Client{Transport: tr}
	if o.HTTPHeader == nil {
		o.HTTPHeader = http.Header{}
	}
	o.HTTPHeader.Set("Authorization", "Bearer secret")
	ws, _, err := websocket.Dial(t.Context(), "ws://executord/ttyd", &o) //nolint:bodyclose // the library closes it
	tr.CloseIdleConnections()
	if err == nil {
		t.Cleanup(func() { ws.CloseNow() })
	}
	return ws, err
}

// rudely says something that is refused and returns the refusal.
func rudely(t *testing.T, dir string, o websocket.DialOptions, first string) error {
	t.Helper()
	ws, err := raw(t, dir, o)
	if err != nil {
		return err
	}
	for _, msg := range []string{first, "9"} {
		_ = ws.Write(t.Context(), websocket.MessageText, []byte(msg))
	}
	for err == nil {
		_, _, err = ws.Read(t.Context())
	}
	return err
}

// A client that is there but silent stays; one that does not even answer is gone.
func TestASilentClient(t *testing.T) {
	tty := []string{"tty"}
	t.Run("answers", func(t *testing.T) {
		dir := home(t)
		serveWith(t, dir, shell.Config{PingEvery: time.Millisecond})
		pings := make(chan struct{}, 3)
		ws, err := raw(t, dir, websocket.DialOptions{Subprotocols: tty, OnPingReceived: func(context.Context, []byte) bool {
			select {
			case pings <- struct{}{}:
			default:
			}
			return true
		}})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				if _, _, err := ws.Read(context.Background()); err != nil {
					return
				}
			}
		}()
		_ = ws.Write(t.Context(), websocket.MessageText, []byte("{}"))
		for range cap(pings) {
			<-pings // each after the answer to the one before
		}
	})
	t.Run("is gone", func(t *testing.T) {
		dir := home(t)
		c, _ := serveWith(t, dir, shell.Config{PingEvery: 10 * time.Millisecond, Patience: 300 * time.Millisecond})
		ws, err := raw(t, dir, websocket.DialOptions{Subprotocols: tty})
		if err != nil {
			t.Fatal(err)
		}
		n := seconds()
		_ = ws.Write(t.Context(), websocket.MessageText, []byte("{}"))
		_ = ws.Write(t.Context(), websocket.MessageText, []byte("0sleep "+n+"\n"))
		poll.Until(t, "the end", func() bool { return open(t, c) == 0 })
		none(t, "sleep "+n)
	})
	t.Run("says nothing at first", func(t *testing.T) {
		dir := home(t)
		c, _ := serveWith(t, dir, shell.Config{Patience: 50 * time.Millisecond})
		if _, err := raw(t, dir, websocket.DialOptions{Subprotocols: tty}); err != nil {
			t.Fatal(err)
		}
		poll.Until(t, "the end", func() bool { return open(t, c) == 0 })
	})
	t.Run("takes no output", func(t *testing.T) {
		dir := home(t)
		c, _ := serveWith(t, dir, shell.Config{PingEvery: 10 * time.Millisecond, Patience: 300 * time.Millisecond})
		ws, err := raw(t, dir, websocket.DialOptions{Subprotocols: tty})
		if err != nil {
			t.Fatal(err)
		}
		_ = ws.Write(t.Context(), websocket.MessageText, []byte("{}"))
		_ = ws.Write(t.Context(), websocket.MessageText, []byte("0yes "+seconds()+"\n"))
		poll.Until(t, "the end", func() bool { return open(t, c) == 0 })
	})
}

// What one pastes is one message; one beyond the limit ends the terminal, and not
// executord.
func TestALargePaste(t *testing.T) {
	dir := home(t)
	c, _ := serve(t, dir)
	ws, err := raw(t, dir, websocket.DialOptions{Subprotocols: []string{"tty"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = ws.Write(t.Context(), websocket.MessageText, []byte("{}"))
	_ = ws.Write(t.Context(), websocket.MessageBinary, bytes.Repeat([]byte("0"), 2<<20))
	var ce websocket.CloseError
	for err == nil {
		_, _, err = ws.Read(t.Context())
	}
	if errors.As(err, &ce) && ce.Code != websocket.StatusMessageTooBig {
		t.Errorf("closed with %v", ce)
	}
	poll.Until(t, "the end", func() bool { return open(t, c) == 0 })

	x := openTerminal(t, c)
	x.say("stty raw -echo; echo rea''dy; exec head -c 200000 > paste\n")
	x.expect("ready")
	x.say(strings.Repeat("\xffpaste\x03", 40_000)[:200_000])
	x.ends()
	got, err := os.ReadFile(filepath.Join(dir, "workspace", "paste"))
	if err != nil || len(got) != 200_000 {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
}
