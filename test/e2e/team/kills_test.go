package team

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// try is ask for a world in which servers die: what got no answer, or one that says to come
// again, is tried again with the same key.
func (tm *team) try(b *browser, method, path string, body, into any, key string) {
	tm.t.Helper()
	last := ""
	poll.Until(tm.t, method+" "+path, func() bool {
		var in io.Reader
		if body != nil {
			text, _ := json.Marshal(body)
			in = bytes.NewReader(text)
		}
		req, err := http.NewRequestWithContext(tm.t.Context(), method, tm.proxy.URL+path, in)
		if err != nil {
			tm.t.Fatal(err)
		}
		req.Header.Set("Thole-Proof", b.proof)
		req.Header.Set("Origin", tm.proxy.URL)
		req.Header.Set("Content-Type", "application/json")
		if key != "" {
			req.Header.Set("Idempotency-Key", key)
		}
		client := http.Client{Jar: b.Jar, Timeout: 10 * time.Second}
		res, err := client.Do(req)
		if err != nil {
			last = err.Error()
			return false
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode >= 500 || res.StatusCode == 409 || res.StatusCode == 429 {
			last = fmt.Sprintf("%d %s %v", res.StatusCode, text, err)
			return false
		}
		if err := json.Unmarshal(text, into); err != nil || res.StatusCode >= 300 {
			tm.t.Errorf("%s %s: %d %s", method, path, res.StatusCode, text)
			tm.t.FailNow()
		}
		return true
	})
	_ = last
}

// storm is what the servers go through while sessions work.
type storm struct{ sessions, turns, kills int }

// weather kills, stops and starts servers, and cuts the connections of the database, until done.
func (tm *team) weather(rnd *rand.Rand, dsn string, s storm, done <-chan struct{}) (kills int) {
	conn := connect(tm.t, dsn)
	for kills < s.kills {
		select {
		case <-done:
			return kills
		case <-time.After(time.Duration(300+rnd.IntN(1200)) * time.Millisecond):
		}
		i := rnd.IntN(len(tm.servers))
		switch kills++; kills % 4 {
		case 0:
			_, _ = conn.Exec(tm.t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
		case 1, 2:
			tm.servers[i].kill()
			tm.start(i)
		case 3:
			_ = tm.servers[i].cmd.Process.Signal(syscall.SIGSTOP)
			<-time.After(time.Duration(rnd.IntN(3)) * time.Second)
			_ = tm.servers[i].cmd.Process.Signal(syscall.SIGCONT)
		}
	}
	return kills
}

// TestServersAreKilled: while servers are killed, stopped and started again, and the database
// drops its connections, every turn of every session is done once, and the leases of turns have
// one holder at a time. THOLE_SOAK makes it long, with the real agents.
func TestServersAreKilled(t *testing.T) {
	s := storm{sessions: 3, turns: 3, kills: 4}
	agents := []string{"test"}
	var vars []string
	if os.Getenv("THOLE_SOAK") != "" {
		s = storm{sessions: 12, turns: 25, kills: 50}
		agents = []string{"test", "codex", "claude", "opencode"}
		vars = []string{"THOLE_PROVIDERS_CODEX=" + lab.Codex(t), "THOLE_PROVIDERS_CLAUDE=" + lab.Claude(t), "THOLE_PROVIDERS_OPENCODE=" + lab.Opencode(t)}
	}
	tm := newTeam(t, 3, "", vars...)
	if _, err := connect(t, tm.dsn).Exec(t.Context(), recorded); err != nil {
		t.Fatal(err)
	}
	me := tm.servers[0].login()
	rnd := rand.New(rand.NewPCG(7, uint64(s.kills)))
	done := make(chan struct{})
	var wg sync.WaitGroup
	ids := make([]string, s.sessions)
	for n := range s.sessions {
		agent := agents[n%len(agents)]
		wg.Go(func() {
			var made ident
			tm.try(me, "POST", "/sessions", map[string]any{"execution_profile": "full", "provider": agent}, &made, fmt.Sprintf("session-%d", n))
			ids[n] = made.ID
			for k := range s.turns {
				var r turn
				tm.try(me, "POST", "/sessions/"+made.ID+"/runs", map[string]any{"text": fmt.Sprintf("sim: run echo line-%d >> log.txt ;; wait 300ms", k)}, &r, fmt.Sprintf("run-%d-%d", n, k))
				poll.Until(t, fmt.Sprintf("the end of turn %d of session %d with %s", k, n, agent), func() bool {
					tm.try(me, "GET", "/runs/"+r.ID, nil, &r, "")
					return r.Outcome != ""
				})
				if r.Outcome != "completed" {
					t.Errorf("session %d, turn %d with %s: %s", n, k, agent, r.Outcome)
				}
			}
		})
	}
	weather := make(chan int, 1)
	go func() { weather <- tm.weather(rnd, tm.dsn, s, done) }()
	wg.Wait()
	close(done)
	t.Logf("%d sessions of %d turns, %d disturbances", s.sessions, s.turns, <-weather)
	for n, id := range ids {
		var r turn
		tm.try(me, "POST", "/sessions/"+id+"/runs", map[string]any{"text": "sim: run sort log.txt | uniq -c | sed 's/  */ /g' ;; say done"}, &r, fmt.Sprintf("count-%d", n))
		tm.over(me, -1, r)
		var items json.RawMessage
		tm.try(me, "GET", "/runs/"+r.ID+"/items", nil, &items, "")
		for k := range s.turns {
			once := fmt.Sprintf(" 1 line-%d", k) // the last line of some agents' output has no end
			if !strings.Contains(string(items), once+`\n`) && !strings.Contains(string(items), once+`"`) {
				t.Errorf("session %d: turn %d was lost or done twice: %s", n, k, items)
			}
		}
		var runs struct {
			Items []turn `json:"items"`
		}
		tm.try(me, "GET", "/sessions/"+id+"/runs?limit=100", nil, &runs, "")
		if len(runs.Items) != s.turns+1 {
			t.Errorf("session %d has %d turns, not %d", n, len(runs.Items), s.turns+1)
		}
	}
	if wrong := faults(history(t, tm.dsn)); len(wrong) > 0 {
		t.Errorf("leases:\n%s", strings.Join(wrong, "\n"))
	}
}
