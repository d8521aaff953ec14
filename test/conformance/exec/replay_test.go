//go:build linux

package exec_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/execserver"
	"github.com/tholehq/thole/protocol/exec"
)

// line is one line of a transcript.
type line struct {
	Dir    string          `json:"dir"`
	Conn   string          `json:"conn"`
	Msg    json.RawMessage `json:"msg"`
	Binary bool            `json:"binary"`
}

// recordedRoot is the directory the recordings ran in.
const recordedRoot = "/home/user/work"

// replay is one transcript being replayed.
type replay struct {
	t       *testing.T
	name    string
	places  [][2]string // recorded text, and what it is in this run
	conns   map[string]*player
	session map[string]string // recorded id → ours
	skip    map[string]bool   // processes whose start differs
	dial    func() *wire
	// Done before a notification is expected and at a note: what the recorder did
	// besides sending.
	before map[string]func()
}

func TestReplay(t *testing.T) {
	environ := []string{"HOME=" + recordedRoot, "PATH=/usr/bin:/bin", "LANG=C", "USER=u", "FOO=foo", "MY_SECRET=s", "API_TOKEN=t"}
	for _, name := range []string{
		"01_initialize_and_info", "02_process_pipes", "03_process_write", "04_process_tty", "05_process_start_errors",
		"06_malformed", "07_unexpected_notifications", "09_fs", "10_fs_0166_additions", "12_two_connections",
		"13_disconnect_resume", "15_read_longpoll_inline", "15_read_longpoll_concurrent", "20_sandbox", "24_env_policy_arg0_snapshot",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := execserver.Config{Environ: environ}
			if strings.HasSuffix(name, "concurrent") {
				cfg.ConcurrentRequests = 16
			}
			url, _ := serve(t, cfg)
			newReplay(t, name, url).run()
		})
	}
}

func newReplay(t *testing.T, name, url string) *replay {
	root := t.TempDir()
	fixture(t, root)
	return &replay{t: t, name: name, places: [][2]string{{recordedRoot, root}}, conns: map[string]*player{}, session: map[string]string{}, skip: map[string]bool{},
		dial: func() *wire { return dial(t, url) }}
}

// fixture lays out the files the recordings started with.
func fixture(t *testing.T, root string) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	for _, d := range []string{"fs/dir/sub", "fs/.hid/x", "sb/ro", "sb/rw"} {
		must(os.MkdirAll(filepath.Join(root, d), 0o755))
	}
	for f, s := range map[string]string{
		"fs/a.txt": "hello\n", "fs/big.txt": strings.Repeat("x", 3000), "fs/sp ace#?%.txt": "", "fs/dir/b.txt": "b", "sb/ro/f": "x\n",
	} {
		must(os.WriteFile(filepath.Join(root, f), []byte(s), 0o644))
	}
	must(os.Symlink("a.txt", filepath.Join(root, "fs/link")))
	must(os.Symlink("dir", filepath.Join(root, "fs/dlink")))
	must(os.Symlink("nowhere", filepath.Join(root, "fs/broken")))
	must(mkfifo(filepath.Join(root, "fs/fifo")))
}

func (r *replay) run() {
	f, err := os.Open(filepath.Join("testdata", r.name+".jsonl"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 1<<20)
	sent := 0
	for scan.Scan() {
		var l line
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			r.t.Fatal(err)
		}
		switch l.Dir {
		case "c2s":
			r.send(l, sent)
			sent++
		case "s2c":
			r.expect(l)
		case "note":
			r.note(l)
		}
	}
	r.finish()
}

func (r *replay) player(conn string) *player {
	p := r.conns[conn]
	if p == nil {
		p = &player{wire: r.dial(), answers: map[string]message{}, procs: map[string]*progress{}, bodies: map[string]*body{}, sent: map[string]string{}}
		r.conns[conn] = p
	}
	return p
}

// ours rewrites recorded text to this run; recorded does the opposite.
func (r *replay) ours(s string) string {
	for was, is := range r.session {
		s = strings.ReplaceAll(s, was, is)
	}
	for _, p := range r.places {
		s = strings.ReplaceAll(s, p[0], p[1])
	}
	return s
}

func (r *replay) recorded(s string) string {
	for was, is := range r.session {
		s = strings.ReplaceAll(s, is, was)
	}
	for _, p := range r.places {
		s = strings.ReplaceAll(s, p[1], p[0])
	}
	return s
}

func (r *replay) send(l line, n int) {
	raw := string(l.Msg)
	if text, ok := rawFrames[r.name][n]; ok {
		raw = text
	} else if strings.HasPrefix(raw, `"`) {
		_ = json.Unmarshal(l.Msg, &raw)
	}
	var m message
	var p exec.ProcessParams
	if json.Unmarshal(l.Msg, &m) == nil && json.Unmarshal(m.Params, &p) == nil {
		if _, differs := differences[r.name][string(m.ID)]; differs && m.Method == exec.MethodProcessStart {
			r.skip[p.ProcessID] = true
		}
	}
	raw = r.ours(raw)
	player := r.player(l.Conn)
	player.sent[string(m.ID)] = raw
	player.send([]byte(raw), l.Binary)
}

func (r *replay) expect(l line) {
	var want message
	if err := json.Unmarshal(l.Msg, &want); err != nil {
		r.t.Fatal(err)
	}
	p := r.player(l.Conn)
	if do := r.before[want.Method]; do != nil {
		do()
	}
	switch {
	case want.Method == exec.NotifyBodyDelta:
		r.expectBody(p, want)
	case want.Method != "" && want.ID != nil, strings.HasPrefix(want.Method, "network/"):
	case strings.HasPrefix(want.Method, "process/"):
		r.expectEvent(p, want)
	case want.Method != "":
		p.until(patience, func() bool {
			for i, m := range p.other {
				if m.Method == want.Method && r.same(m.Params, want.Params) {
					p.other = append(p.other[:i], p.other[i+1:]...)
					return true
				}
			}
			return false
		}, "notification "+want.Method)
	default:
		r.expectAnswer(p, want)
	}
}

func (r *replay) expectAnswer(p *player, want message) {
	id := string(want.ID)
	var got message
	if id == "-1" {
		p.until(patience, func() bool { return len(p.errs) > 0 }, "error with id -1")
		got, p.errs = p.errs[0], p.errs[1:]
	} else {
		if r.name == "06_malformed" && id == "9223372036854776000" { // beyond the recorder's numbers
			id = "9223372036854775807"
		}
		got = p.answer(id)
		for want.Error == nil && got.Error != nil && got.Error.Code == exec.CodeSessionAttached { // the server has yet to see the cut
			p.send([]byte(p.sent[id]), false)
			got = p.answer(id)
		}
	}
	if d, ok := differences[r.name][id]; ok {
		if d.code != 0 && (got.Error == nil || got.Error.Code != d.code) {
			r.t.Errorf("id %s: got %s, want code %d (%s)", id, show(got), d.code, d.why)
		}
		return
	}
	r.learnSession(got, want)
	switch {
	case (want.Error == nil) != (got.Error == nil):
		r.t.Errorf("id %s: got %s, recorded %s", id, show(got), show(want))
	case want.Error != nil && want.Error.Code != got.Error.Code:
		r.t.Errorf("id %s: got code %d (%s), recorded %d (%s)", id, got.Error.Code, got.Error.Message, want.Error.Code, want.Error.Message)
	case want.Error == nil && !r.same(got.Result, want.Result):
		r.t.Errorf("id %s:\n got      %s\n recorded %s", id, r.recorded(string(got.Result)), want.Result)
	}
}

// expectBody compares whole bodies: how they are cut is nobody's promise.
func (r *replay) expectBody(p *player, want message) {
	var d exec.BodyDeltaParams
	_ = json.Unmarshal(want.Params, &d)
	b := p.body(d.RequestID)
	b.want += string(d.Delta)
	if !d.Done {
		return
	}
	p.until(patience, func() bool { return b.done }, "end of body "+d.RequestID)
	if b.got != b.want || b.failed != (d.Error != nil) {
		r.t.Errorf("body %s: %q failed %v, recorded %q failed %v", d.RequestID, b.got, b.failed, b.want, d.Error != nil)
	}
}

func show(m message) string {
	if m.Error != nil {
		return fmt.Sprintf("error %d %s", m.Error.Code, m.Error.Message)
	}
	return fmt.Sprintf("result %.300s", m.Result)
}

func (r *replay) learnSession(got, want message) {
	var g, w exec.InitializeResult
	if json.Unmarshal(got.Result, &g) == nil && json.Unmarshal(want.Result, &w) == nil && w.SessionID != "" {
		r.session[w.SessionID] = g.SessionID
	}
}

func (r *replay) expectEvent(p *player, want message) {
	var out exec.OutputParams
	_ = json.Unmarshal(want.Params, &out)
	if r.skip[out.ProcessID] {
		return
	}
	pr := p.proc(out.ProcessID)
	what := want.Method + " of " + out.ProcessID
	switch want.Method {
	case exec.NotifyOutput:
		pr.want[out.Stream] += string(out.Chunk)
		n := len(pr.want[out.Stream])
		p.soft(time.Second, func() bool { return len(r.recorded(pr.got[out.Stream])) >= n })
	case exec.NotifyExited:
		pr.wantExit = new(exec.ExitedParams)
		_ = json.Unmarshal(want.Params, pr.wantExit)
		p.until(patience, func() bool { return pr.exit != nil }, what)
		if pr.exit.ExitCode != pr.wantExit.ExitCode || !reflect.DeepEqual(pr.exit.SandboxDenied, pr.wantExit.SandboxDenied) {
			r.t.Errorf("%s: got %+v denied %v, recorded %+v denied %v", what, pr.exit, *pr.exit.SandboxDenied, pr.wantExit, *pr.wantExit.SandboxDenied)
		}
	case exec.NotifyClosed:
		pr.wantClosed = true
		p.until(patience, func() bool { return pr.closed }, what)
	}
}

// note performs what the recording did besides sending.
func (r *replay) note(l line) {
	var text string
	if json.Unmarshal(l.Msg, &text) != nil {
		return
	}
	if do := r.before[text]; do != nil {
		do()
	}
	switch text {
	case "abrupt TCP close", "clean close then resume", "close stdin":
		p := r.player(l.Conn)
		p.cut()
		<-p.closed
	case "closed=true":
		p := r.player(l.Conn)
		if !p.isClosed(patience) {
			r.t.Error("the connection stayed open, recorded closed")
		}
		delete(r.conns, l.Conn)
	case "closed=false":
		if r.player(l.Conn).isClosed(50 * time.Millisecond) {
			r.t.Error("the connection was closed, recorded open")
		}
	case "binary frame with invalid utf8":
		r.player(l.Conn).send([]byte{0xff, 0xfe, '{'}, true)
	case "array of >256Ki values":
		r.player(l.Conn).send([]byte(`{"id":6,"method":"x","params":[0`+strings.Repeat(",0", 300_000)+`]}`), false)
	}
}

// finish compares whole outputs and checks the sequence numbers.
func (r *replay) finish() {
	for _, p := range r.conns {
		for id, pr := range p.procs {
			if r.skip[id] {
				continue
			}
			for i := 1; i < len(pr.seqs); i++ {
				if pr.seqs[i] != pr.seqs[i-1]+1 {
					r.t.Errorf("process %s: sequence %v", id, pr.seqs)
					break
				}
			}
			if !pr.wantClosed || r.name == "13_disconnect_resume" { // cut in the middle
				continue
			}
			for st, want := range pr.want {
				got := r.output(r.recorded(pr.got[st]))
				if want = r.output(want); got != want {
					r.t.Errorf("process %s %s:\n got      %q\n recorded %q", id, st, got, want)
				}
			}
		}
	}
}
