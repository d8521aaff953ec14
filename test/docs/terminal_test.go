package docs

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// The size of the terminal that guides are typed in.
const (
	columns = 110
	rows    = 32
)

// terminal is a shell in a pseudo terminal that keeps what was typed and shown.
type terminal struct {
	t    *testing.T
	pty  *os.File
	more chan struct{} // has something when output has come

	mu     sync.Mutex
	output []chunk
}

// chunk is output, with the moment it came.
type chunk struct {
	at   time.Time
	text string
}

// typed is a command with what came of it.
type typed struct {
	command string
	at      time.Time
	output  []chunk // from the end of the command line to the next prompt
}

// prompted is what the shell prints before each prompt, for us and not for the screen:
// the status of the command before it.
var prompted = regexp.MustCompile("\x1b\\]133;D;([0-9]+)\x07")

// openTerminal starts a shell that shows a plain prompt.
func openTerminal(t *testing.T, dir string, env []string) *terminal {
	t.Helper()
	cmd := exec.Command("bash", "--norc", "--noprofile", "--noediting", "-i")
	cmd.Dir = dir
	cmd.Env = append(env, "TERM=xterm-256color", "LANG=C.UTF-8", `PROMPT_COMMAND=printf '\033]133;D;%d\007' $?`, "PS1=$ ", "PS2=> ", "HISTFILE=")
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: rows, Cols: columns})
	if err != nil {
		t.Fatal(err)
	}
	s := &terminal{t: t, pty: f, more: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 1<<16)
		for {
			n, err := f.Read(buffer)
			s.mu.Lock()
			s.output = append(s.output, chunk{time.Now(), string(buffer[:n])})
			s.mu.Unlock()
			select {
			case s.more <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = f.Close()
		<-done
	})
	s.prompt("the shell")
	return s
}

// types gives the shell a command and waits for the next prompt. The command must succeed.
func (s *terminal) types(command string) typed {
	s.t.Helper()
	got := typed{command: command, at: time.Now()}
	if _, err := s.pty.WriteString(command + "\n"); err != nil {
		s.t.Fatal(err)
	}
	chunks, status := s.prompt(command)
	if status != 0 {
		s.t.Fatalf("%s: exit %d\n%s", command, status, text(chunks))
	}
	got.output = chunks
	return got
}

// prompt waits for a prompt and takes all output up to it.
func (s *terminal) prompt(what string) ([]chunk, int) {
	s.t.Helper()
	late := time.After(patience)
	for {
		s.mu.Lock()
		all := text(s.output)
		m := prompted.FindStringSubmatch(all)
		if m != nil && strings.HasSuffix(all, "$ ") {
			taken := s.output
			s.output = nil
			s.mu.Unlock()
			status, _ := strconv.Atoi(m[1])
			return taken, status
		}
		s.mu.Unlock()
		select {
		case <-s.more:
		case <-late:
			s.t.Fatalf("%s did not end:\n%s", what, all)
		}
	}
}

func text(chunks []chunk) string {
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString(c.text)
	}
	return b.String()
}

// control is what a terminal obeys instead of showing it.
var control = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|\x1b\\][^\x07]*\x07|\x1b[=>]|\x07")

// screen is what a terminal shows after output: as much of its end as fits. It knows line
// ends, returns, backspaces, erased lines and moves up, which is what our commands use.
func screen(output string) []string {
	lines, row, column := [][]rune{{}}, 0, 0
	put := func(r rune) {
		if column == columns {
			row, column = row+1, 0
		}
		for row >= len(lines) {
			lines = append(lines, nil)
		}
		for column >= len(lines[row]) {
			lines[row] = append(lines[row], ' ')
		}
		lines[row][column] = r
		column++
	}
	obey := func(code string) {
		n, _ := strconv.Atoi(strings.Trim(code, "\x1b[ABCDEFGHJKm?hl"))
		switch code[len(code)-1] {
		case 'K':
			if n == 0 && row < len(lines) && column < len(lines[row]) {
				lines[row] = lines[row][:column]
			} else if n == 2 && row < len(lines) {
				lines[row] = nil
			}
		case 'A':
			row = max(0, row-max(1, n))
		case 'J':
			if row < len(lines) {
				lines = lines[:row+1]
				lines[row] = lines[row][:min(column, len(lines[row]))]
			}
		}
	}
	for rest := output; rest != ""; {
		if at := control.FindStringIndex(rest); at != nil && at[0] == 0 {
			if strings.HasPrefix(rest, "\x1b[") {
				obey(rest[:at[1]])
			}
			rest = rest[at[1]:]
			continue
		}
		r := []rune(rest)[0]
		rest = rest[len(string(r)):]
		switch r {
		case '\n':
			row++
		case '\r':
			column = 0
		case '\b':
			column = max(0, column-1)
		case '\a':
		default:
			put(r)
		}
	}
	for row >= len(lines) {
		lines = append(lines, nil)
	}
	var out []string
	for _, line := range lines[max(0, len(lines)-rows):] {
		out = append(out, strings.TrimRight(string(line), " "))
	}
	return out
}

func TestScreen(t *testing.T) {
	for output, want := range map[string]string{
		"$ a\r\nb\r\n$ ":                          "$ a|b|$",
		"wait\r\x1b[Kdone\r\n":                    "done|",
		"\x1b[31mred\x1b[0m \x1b]0;title\x07x":    "red x",
		"one\r\ntwo\r\n\x1b[1Athree":              "one|three",
		"one\r\ntwo\x1b[1A\r\x1b[2Kfour":          "four|two",
		strings.Repeat("x", columns+2):            strings.Repeat("x", columns) + "|xx",
		"a\r\n" + strings.Repeat("l\r\n", rows-1): strings.Repeat("l|", rows-1),
	} {
		if got := strings.Join(screen(output), "|"); got != want {
			t.Errorf("%q shows %q, not %q", output, got, want)
		}
	}
}

// holds reports the first line that a screen lacks, of lines that stand in this order;
// … in a line stands for anything.
func holds(shown []string, lines []string) error {
	row := 0
	for _, line := range lines {
		parts := strings.Split(line, "…")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		pattern := regexp.MustCompile(strings.Join(parts, ".*"))
		for ; row < len(shown) && !pattern.MatchString(shown[row]); row++ {
		}
		if row == len(shown) {
			return fmt.Errorf("the screen does not show %q:\n%s", line, strings.Join(shown, "\n"))
		}
		row++
	}
	return nil
}
