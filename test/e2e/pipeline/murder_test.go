package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// client asks a program that is killed and begun again under it: a request without
// an answer is asked again, under the same key. Where the program was, another one may
// listen and answer, which counts for nothing.
type client struct {
	mu    sync.Mutex // guards base
	base  string     // empty while the program is dead
	token string
	stop  <-chan struct{}
}

func (c *client) move(base string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = base
}

func (c *client) at() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base
}

var errGivenUp = errors.New("the test ended")

func (c *client) ask(method, path, key string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	for {
		base := c.at()
		req, err := http.NewRequest(method, base+path, bytes.NewReader(data))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+c.token)
		req.Header.Set("Content-Type", "application/json")
		if key != "" {
			req.Header.Set("Idempotency-Key", key)
		}
		err = do(req, into)
		// Refused is an answer; a connection that broke, or half of one, is not.
		if (err == nil || strings.Contains(err.Error(), ": 4")) && base == c.at() {
			return err
		}
		select {
		case <-c.stop:
			return errors.Join(errGivenUp, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// What another program answers, that listens where the dead one did, is not believed.
func TestOnlyTheProgramIsBelieved(t *testing.T) {
	t.Parallel()
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"id":"ours"}`)) }))
	defer own.Close()
	c := &client{stop: make(chan struct{})}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c.move(own.URL)
		http.Error(w, "who are you?", http.StatusForbidden)
	}))
	defer other.Close()
	c.move(other.URL)
	var got struct{ ID string }
	if err := c.ask("GET", "/", "", nil, &got); err != nil || got.ID != "ours" {
		t.Errorf("%+v, %v", got, err)
	}
}

type played struct {
	session, run, marker string
	agent                string
	got                  run
}

// Turns are played while the program is killed again and again, at times that a
// seed decides. Each turn is done exactly once or said to have failed: in the files
// that the turns write, in the threads' histories and in what the agents said.
// With THOLE_SOAK=1 there are more, and two processes that keep the machine busy.
func TestKilledAtRandom(t *testing.T) {
	threads, each := 6, 10
	if os.Getenv("THOLE_SOAK") != "" {
		threads, each = 10, 20
		keepBusy(t)
	}
	r := newRig(t, "THOLE_EXECUTOR_STARTS_PER_SECOND=100")
	r.murders(t, []string{"test"}, threads, each, 20*time.Millisecond, 600*time.Millisecond)
}

// The same with the real agents, codex as npm installs it: a script that stays the
// parent of the program. It takes many minutes, so only with THOLE_SOAK=1.
func TestRealAgentsKilledAtRandom(t *testing.T) {
	if os.Getenv("THOLE_SOAK") == "" {
		t.Skip("set THOLE_SOAK=1")
	}
	keepBusy(t)
	r := newRig(t, "THOLE_PROVIDERS_CODEX="+lab.NPMCodex(t), "THOLE_PROVIDERS_CLAUDE="+lab.Claude(t), "THOLE_PROVIDERS_OPENCODE="+lab.Opencode(t))
	// The model is elsewhere, as real ones are. One that dies in the middle of a call
	// makes an agent ask again, and its tools run twice by the agent's own decision.
	r.model = modelsim.Start(t, modelsim.Options{Demo: true, Pace: 15 * time.Millisecond}).URL()
	r.murders(t, []string{"codex", "claude", "opencode"}, 6, 34, 300*time.Millisecond, 2700*time.Millisecond)
}

// keepBusy has two processes compete for the machine.
func keepBusy(t *testing.T) {
	t.Helper()
	for range 2 {
		busy := exec.Command("/bin/sh", "-c", "while :; do :; done")
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = busy.Process.Kill(); _ = busy.Wait() })
	}
}

// murders plays turns in threads of these agents, and kills the program every while
// between least and least+span.
func (r *rig) murders(t *testing.T, agents []string, threads, each int, least, span time.Duration) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if v, err := strconv.ParseUint(os.Getenv("THOLE_SEED"), 10, 64); err == nil {
		seed = v
	}
	t.Logf("THOLE_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	r.begin(t)
	stop := make(chan struct{})
	c := &client{base: r.base, token: r.token, stop: stop}
	begun := time.Now()
	results, fails := make(chan played, threads*each), make(chan error, threads)
	var wg sync.WaitGroup
	for n := range threads {
		wg.Go(func() {
			if err := c.converse(agents[n%len(agents)], n, each, results); err != nil {
				fails <- fmt.Errorf("thread %d: %w", n, err)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	kills, limit := 0, time.After(20*time.Minute)
	finished, idle := 0, 0
	for over := false; !over; {
		// On a machine that is too slow to start an executor between two kills nothing would
		// ever be done: it is left in peace for longer.
		if idle++; len(results) > finished {
			finished, idle = len(results), 0
		} else if idle == 30 {
			least, span, idle = 2*least, 2*span, 0
		}
		select {
		case <-done:
			over = true
		case <-limit:
			t.Error("the turns do not end")
			over = true
		case <-time.After(least + time.Duration(random.Int64N(int64(span)))):
			c.move("")
			r.murder(t)
			kills++
			r.begin(t)
			c.move(r.base)
		}
	}
	close(stop)
	wg.Wait()
	close(results)
	close(fails)
	for err := range fails {
		t.Error(err)
	}
	r.count(t, results, threads, each)
	t.Logf("%d turns in %d threads, killed %d times in %s", threads*each, threads, kills, time.Since(begun).Round(time.Second))
	if kills == 0 {
		t.Error("it was never killed")
	}
}

// converse plays the turns of one thread, one after another. Each appends its own
// line to a file; every fifth of the scripted agent asks a question in between.
func (c *client) converse(agent string, n, each int, results chan<- played) error {
	var made struct{ ID string }
	if err := c.ask("POST", "/sessions", fmt.Sprintf("session-%d", n), map[string]any{"provider": agent, "execution_profile": "full"}, &made); err != nil {
		return err
	}
	for i := range each {
		marker := fmt.Sprintf("marker-%d-%d.", n, i)
		question := ""
		if i%5 == 4 && agent == "test" {
			question = "ask Go on? | yes | no ;; "
		}
		prompt := "sim: run echo " + marker + " >> log.txt ;; " + question + "wait 300ms ;; say said-" + marker
		p := played{session: made.ID, marker: marker, agent: agent}
		if err := c.ask("POST", "/sessions/"+made.ID+"/runs", "run-"+marker, map[string]any{"text": prompt}, &p.got); err != nil {
			return err
		}
		p.run = p.got.ID
		for p.got.Phase != "succeeded" && p.got.Phase != "failed" && p.got.Phase != "canceled" {
			if p.got.Phase == "waiting_human" {
				if err := c.answer(p.run); err != nil {
					return err
				}
			}
			select {
			case <-c.stop:
				return fmt.Errorf("%w; %+v", errGivenUp, p.got)
			case <-time.After(20 * time.Millisecond):
			}
			if err := c.ask("GET", "/runs/"+p.run, "", nil, &p.got); err != nil {
				return err
			}
		}
		results <- p
	}
	return nil
}

func (c *client) answer(run string) error {
	var page struct{ Items []question }
	if err := c.ask("GET", "/runs/"+run+"/human-loop?state=pending", "", nil, &page); err != nil {
		return err
	}
	for _, q := range page.Items {
		err := c.ask("POST", "/runs/"+run+"/human-loop/"+q.QuestionID+"/reply", "", map[string]any{"answers": map[string][]string{q.Questions[0].ID: {"yes"}}}, nil)
		if err != nil && !strings.Contains(err.Error(), ": 409") { // answered by a request whose answer got lost
			return err
		}
	}
	return nil
}

// count reads the workspaces and the histories.
func (r *rig) count(t *testing.T, results <-chan played, threads, each int) {
	t.Helper()
	type record struct{ asked, said []string }
	files := map[string]string{} // of a session
	own := map[string]record{}   // what its agent recorded itself
	total, failed := 0, 0
	for p := range results {
		total++
		s := &session{rig: r, t: t, id: p.session}
		if _, ok := files[p.session]; !ok {
			info, found := r.executor(t, p.session)
			if !found {
				t.Fatalf("session %s has no executor", p.session)
			}
			workspace := filepath.Join(r.home, "x", string(info.ID), "workspace")
			var rec record
			if rec.asked, rec.said = transcript(t, workspace); p.agent != "test" && len(rec.asked) == 0 {
				t.Fatalf("session %s of %s has no record of its agent's own", p.session, p.agent)
			}
			own[p.session] = rec
			data, err := os.ReadFile(filepath.Join(workspace, "log.txt"))
			if err != nil {
				t.Fatal(err)
			}
			files[p.session] = string(data)
			if lines := strings.Count(string(data), "\n"); lines > each {
				t.Errorf("session %s has %d lines of %d turns", p.session, lines, each)
			}
		}
		written, said := strings.Count(files[p.session], p.marker+"\n"), strings.Count(s.said(p.run), "said-"+p.marker)
		asked := 0
		for _, it := range s.items(p.run) {
			if it.Kind == "user_message" {
				asked++
			}
		}
		if rec := own[p.session]; p.agent != "test" {
			// The prompt holds both words: it was asked once, and said once if completed.
			heard, answered := holding(rec.asked, "echo "+p.marker), holding(rec.said, "said-"+p.marker)
			if heard > 1 || answered > 1 || p.got.Outcome == "completed" && (heard != 1 || answered != 1) {
				t.Errorf("%s: %s, by the record of %s asked %d times and said %d times", p.marker, p.got.Outcome, p.agent, heard, answered)
			}
		}
		switch p.got.Outcome {
		case "completed":
			if written != 1 || said != 1 || asked != 1 {
				t.Errorf("%s: completed, %d times in the file, said %d times, asked %d times", p.marker, written, said, asked)
			}
		case "failed":
			failed++
			if p.got.Error == nil || p.got.Error.Message == "" || written > 1 || said > 1 || asked != 1 {
				t.Errorf("%s: failed with %+v, %d times in the file, said %d times, asked %d times", p.marker, p.got.Error, written, said, asked)
			}
		default:
			t.Errorf("%s ended %q", p.marker, p.got.Outcome)
		}
	}
	if total != threads*each {
		t.Errorf("%d turns of %d ended", total, threads*each)
	}
	for id := range files {
		var page struct{ Items []run }
		r.call(t, "GET", "/sessions/"+id+"/runs?limit=100", nil, &page)
		if len(page.Items) != each {
			t.Errorf("session %s has %d turns in its history, not %d", id, len(page.Items), each)
		}
	}
	t.Logf("%d completed, %d said failed", total-failed, failed)
}
