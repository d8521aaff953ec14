package channel

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// storm is a home whose daemon, and the server of whose only session, are killed at
// any time. The test is the user: it opens the session again when its server died,
// and closes what is held.
type storm struct {
	t      *testing.T
	dir    string
	codex  string
	rnd    *rand.Rand
	thread string
	kills  map[string]int
	held   map[string]string // reasons, by batch
	shut   error             // why the session was last not opened
}

func newStorm(t *testing.T, seed uint64) *storm {
	dir, err := os.MkdirTemp("", "st")
	if err != nil {
		t.Fatal(err)
	}
	s := &storm{t: t, dir: dir, codex: lab.CodexLauncher(t), rnd: rand.New(rand.NewPCG(seed, 3)), kills: map[string]int{}, held: map[string]string{}}
	if err := modelsim.CodexConfig(s.path("codex"), modelsim.Start(t).URL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.cli("daemon", "stop")
		for pid := range s.running() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		os.RemoveAll(dir)
	})
	return s
}

func (s *storm) path(p ...string) string { return filepath.Join(append([]string{s.dir}, p...)...) }

func (s *storm) env() []string {
	return []string{
		"HOME=" + s.dir, "THOLE_HOME=" + s.path("thole"), "CODEX_HOME=" + s.path("codex"), "TMPDIR=" + s.dir, "PATH=" + os.Getenv("PATH"),
		"THOLE_DELIVERY_WAIT_WINDOW=0s", "THOLE_DELIVERY_MIN_INTERVAL=1ms", "THOLE_DELIVERY_MAX_JOBS=1",
	}
}

// cli runs the program, which starts the daemon if there is none.
func (s *storm) cli(args ...string) ([]byte, error) {
	cmd := exec.Command(binary, append(args, "--json")...)
	cmd.Env, cmd.Dir = s.env(), s.dir
	return cmd.Output()
}

// ask calls the daemon, until one answers.
func (s *storm) ask(method string, params, result any) error {
	for deadline := time.Now().Add(time.Minute); ; {
		err := (&daemonclient.Client{Home: s.path("thole"), NoStart: true}).Call(s.t.Context(), method, params, result)
		away := err != nil && (strings.Contains(err.Error(), "no thole process owns") || strings.Contains(err.Error(), "starts or ends"))
		if !away || time.Now().After(deadline) {
			return err
		}
		if out, err := s.cli("batch", "list"); err != nil && time.Now().After(deadline) {
			return fmt.Errorf("start the daemon: %w: %s", err, out)
		}
	}
}

func (s *storm) must(method string, params, result any) {
	s.t.Helper()
	if err := s.ask(method, params, result); err != nil {
		log, _ := os.ReadFile(s.path("thole", "daemon.log"))
		s.t.Fatalf("%s: %v\n%s", method, err, log[max(0, len(log)-2000):])
	}
}

func (s *storm) session() (found wire.CodexSession) {
	s.t.Helper()
	var list []wire.CodexSession
	s.must(wire.SessionList, wire.SessionListParams{}, &list)
	for _, a := range list {
		if a.ThreadID == s.thread {
			found = a
		}
	}
	return found
}

// open asks for a session, as codex run does for its terminal.
func (s *storm) open() (a wire.CodexSession, err error) {
	err = s.ask(wire.SessionOpen, wire.SessionOpenParams{
		CodexHome: s.path("codex"), ThreadID: s.thread, Dir: s.dir, Program: s.codex, Env: s.env(), ClientPID: os.Getpid(), Trust: "trusted-all", Kind: "owned",
	}, &a)
	return a, err
}

// begin makes the thread with one finished turn.
func (s *storm) begin() {
	s.t.Helper()
	a, err := s.open()
	if err != nil {
		s.t.Fatal(err)
	}
	h := &host{addr: a.Address}
	user, thread := h.thread(s.t)
	user.Close()
	s.thread = thread
	poll.Until(s.t, "the thread to be bound", func() bool { return s.session().State == "live" })
}

// tend is what the user does now and then.
func (s *storm) tend() {
	s.t.Helper()
	var held []wire.Batch
	s.must(wire.BatchList, wire.BatchListParams{Held: true, Limit: 10}, &held)
	for _, b := range held {
		if b.CloseReason != "" || !b.Head {
			continue
		}
		s.held[b.BatchID] = b.HeldFor
		var closed wire.Batch
		if err := s.ask(wire.BatchClose, wire.BatchParams{BatchID: b.BatchID, SourceThreadID: s.thread, Endpoint: b.Endpoint, Reason: "operator_closed_unconfirmed"}, &closed); err != nil {
			s.t.Logf("close %s: %v", b.BatchID, err)
		}
	}
	if a := s.session(); a.State != "live" || !a.ServerAlive {
		_, s.shut = s.open() // refused while a delivery is being settled
	}
}

// undone lists what is not closed.
func (s *storm) undone() (list []wire.Batch) {
	s.t.Helper()
	s.must(wire.BatchList, wire.BatchListParams{Open: true, Limit: 1000}, &list)
	return list
}

// settle waits until at most so many batches are open. There is no end as long as
// something moves.
func (s *storm) settle(most int) {
	s.t.Helper()
	last, since := -1, time.Now()
	for {
		s.tend()
		n := len(s.undone())
		if n <= most {
			return
		}
		if n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) > 3*time.Minute {
			story, _ := s.cli("batch", "inspect-head", "--source-thread-id", s.thread)
			s.t.Fatalf("%d results do not get on, session: %v: %s", n, s.shut, story)
		}
		time.Sleep(50 * time.Millisecond) // between looks; the daemon signals nothing
	}
}

// strike kills something, at a time that the seed chooses.
func (s *storm) strike() {
	what, wait := s.rnd.IntN(24), time.Duration(s.rnd.IntN(600))*time.Millisecond
	if what > 8 {
		return
	}
	time.Sleep(wait) // when it happens is what is tried
	pid, name := 0, ""
	switch {
	case what <= 4:
		var st wire.Status
		if err := (&daemonclient.Client{Home: s.path("thole"), NoStart: true}).Call(s.t.Context(), wire.DaemonStatus, struct{}{}, &st); err == nil {
			pid, name = st.PID, "daemon"
		}
	default:
		for p, line := range s.running() {
			launcher := strings.HasPrefix(line, "node ")
			if strings.Contains(line, "--listen") && launcher == (what == 8) {
				pid, name = p, map[bool]string{true: "launcher", false: "server"}[launcher]
			}
		}
	}
	if pid != 0 && syscall.Kill(pid, syscall.SIGKILL) == nil {
		s.kills[name]++
	}
}

// running lists the processes of servers of this Codex home, with their command
// lines. The daemon and its commands have the same environment and do not count.
func (s *storm) running() map[int]string {
	all := map[int]string{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil || !bytes.Contains(env, []byte("CODEX_HOME="+s.path("codex")+"\x00")) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		text := string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		if strings.Contains(text, "app-server") {
			all[pid] = text
		}
	}
	return all
}

// recorded counts, in the files that Codex itself keeps of its conversations, the
// messages of the user that hold each mark.
func (s *storm) recorded() map[string]int {
	s.t.Helper()
	count := map[string]int{}
	files := 0
	err := filepath.WalkDir(s.path("codex", "sessions"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasPrefix(d.Name(), "rollout-") {
			return err
		}
		files++
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		r := bufio.NewScanner(f)
		r.Buffer(nil, 16<<20)
		for r.Scan() {
			var line struct {
				Type    string
				Payload struct {
					Type, Role string
					Content    []struct{ Text string }
				}
			}
			// A killed server may leave half a line.
			if json.Unmarshal(r.Bytes(), &line) != nil || line.Type != "response_item" || line.Payload.Type != "message" || line.Payload.Role != "user" {
				continue
			}
			for _, c := range line.Payload.Content {
				for _, word := range strings.Fields(c.Text) {
					if strings.HasPrefix(word, markPrefix) {
						count[word]++
					}
				}
			}
		}
		return r.Err()
	})
	if err != nil || files == 0 {
		s.t.Fatalf("%d files of conversations: %v", files, err)
	}
	return count
}

// chosen is a seed that kills the daemon and the server among the first results.
const chosen = 7

const markPrefix = "soak-result-"

// Results go into a real Codex thread, whose server a launcher started, while the
// daemon, the server and the launcher are killed. Codex's own files judge: what the
// ledger calls accepted reached the model once, what is held at most once, and
// nothing is lost. THOLE_SOAK makes it 500 results on a busy machine;
// THOLE_SOAK_RUNS and THOLE_SOAK_SEED change number and seed.
func TestKillsLoseAndDoubleNothing(t *testing.T) {
	n, seed := 10, uint64(chosen)
	soak := os.Getenv("THOLE_SOAK") != ""
	if soak {
		n = 500
		for range 2 {
			busy := exec.Command("sh", "-c", "while :; do :; done")
			busy.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			if err := busy.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = busy.Process.Kill(); _ = busy.Wait() })
		}
	}
	if v, err := strconv.Atoi(os.Getenv("THOLE_SOAK_RUNS")); err == nil {
		n = v
	}
	if v, err := strconv.ParseUint(os.Getenv("THOLE_SOAK_SEED"), 10, 64); err == nil {
		seed = v
	}
	began := time.Now()
	s := newStorm(t, seed)
	s.begin()
	marks := map[string]string{} // by job
	for i := range n {
		mark := fmt.Sprintf("%s%04d", markPrefix, i)
		var j struct {
			JobID string `json:"job_id"`
		}
		out, err := s.cli("job", "submit", "--target", "cli", "--thread-id", s.thread, "--dedupe-key", mark)
		if err == nil {
			err = json.Unmarshal(out, &j)
		}
		if err == nil {
			out, err = s.cli("job", "complete", "--job-id", j.JobID, "--summary", fmt.Sprintf("sim: wait %dms ;; say read\n%s", s.rnd.IntN(200), mark))
		}
		if err != nil {
			t.Fatalf("job %d: %v: %s", i, err, out)
		}
		marks[j.JobID] = mark
		s.strike()
		s.settle(4)
	}
	s.settle(0)

	var batches []wire.Batch
	s.must(wire.BatchList, wire.BatchListParams{Limit: 1000}, &batches)
	var ledger []wire.Audit
	s.must(wire.AuditList, wire.AuditParams{SourceThreadID: s.thread, Limit: 100 * n}, &ledger)
	accepted := map[string]bool{}
	for _, row := range ledger {
		if row.Event == "attempt.accept" {
			accepted[row.BatchID] = true
		}
	}
	recorded := s.recorded()
	var delivered, held, heldTold, lost, doubled int
	fate := map[string]wire.Batch{}
	for _, b := range batches {
		fate[b.BatchID] = b
	}
	for job, mark := range marks {
		var j wire.Job
		s.must(wire.JobQuery, wire.JobParams{JobID: job}, &j)
		b, got := fate[j.BatchID], recorded[mark]
		switch {
		case got > 1:
			doubled++
			t.Errorf("%s is in %d messages: %s, held for %q", mark, got, b.CloseReason, s.held[b.BatchID])
		case got == 0 && (accepted[b.BatchID] || b.CloseReason == "delivered"):
			lost++
			t.Errorf("%s is called accepted and is in no message: %s, held for %q", mark, b.CloseReason, s.held[b.BatchID])
		case b.CloseReason == "delivered":
			delivered++
		case s.held[b.BatchID] != "":
			held++
			heldTold += got
			t.Logf("%s: held for %s, accepted %v, in %d messages", mark, s.held[b.BatchID], accepted[b.BatchID], got)
		default:
			lost++
			t.Errorf("%s, job %s, batch %q: closed as %q", mark, job, j.BatchID, b.CloseReason)
		}
	}
	figures := fmt.Sprintf("seed %d: %d results, %d delivered, %d held (%d of them recorded), %d lost, %d doubled; killed: daemon %d, server %d, launcher %d; %s",
		seed, n, delivered, held, heldTold, lost, doubled, s.kills["daemon"], s.kills["server"], s.kills["launcher"], time.Since(began).Round(time.Second))
	t.Log(figures)
	if seed == chosen && (s.kills["daemon"] == 0 || s.kills["server"] == 0) {
		t.Error("nothing was killed")
	}
	if held > s.kills["server"] {
		t.Errorf("%d results are held after %d deaths of the server", held, s.kills["server"])
	}
	if out, err := s.cli("check"); err != nil {
		t.Errorf("check: %v: %s", err, out)
	}
	a := s.session()
	s.must(wire.SessionLeave, wire.SessionParams{SessionID: a.ID}, new(wire.CodexSession))
	poll.Until(t, "the end of every server", func() bool { return len(s.running()) == 0 })
	if soak && !t.Failed() {
		page := killsPage + fmt.Sprintf("| %d | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n\nLast run: %s, %s.\n", seed, n, s.kills["daemon"], s.kills["server"], s.kills["launcher"],
			delivered, held, heldTold, lost, doubled, began.UTC().Format("2006-01-02"), time.Since(began).Round(time.Second))
		if err := os.WriteFile(filepath.Join("..", "..", "..", "docs", "delivery-kills.md"), []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const killsPage = `# Deliveries while things are killed

Written by ` + "`THOLE_SOAK=1 go test ./test/e2e/channel -run TestKillsLoseAndDoubleNothing -timeout 60m`" + `.

Results go one by one into a thread of a real Codex app-server (scripted model) that thole started through a launcher, as npm's
` + "`codex`" + ` is one, with two busy loops alongside. At times that the seed chooses the daemon, the server or the launcher is killed with SIGKILL; the
test opens the session again and closes what is held. The judge is not the ledger but Codex's own files
(` + "`CODEX_HOME/sessions/**/rollout-*.jsonl`" + `): how many messages of the user hold a result. *Held* are results whose server died in their turn; *recorded* are
those of them that are in a message. *Lost* are results called accepted that are in no message, or whose end is unknown; *doubled* those in two. At the end no process of a
server remains.

| seed | results | daemon killed | server killed | launcher killed | delivered | held | recorded | lost | doubled |
|---|---|---|---|---|---|---|---|---|---|
`
