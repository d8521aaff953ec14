//go:build linux

package exec_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/execserver"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/protocol/exec"
)

// TestRandomRequests sends the same random requests to our server and the real one and
// compares what they answer, run, write and say, for a minute: 40 s as root, 20 s as an
// ordinary user. What differs is listed in listedDifferences or fails. The cases are
// numbered, and a number makes the same case again: THOLE_CASE runs one of them. The first
// are the same each time; those that follow, until the time is over, are others. THOLE_SOAK
// tries many more.
func TestRandomRequests(t *testing.T) {
	if os.Getenv("THOLE_CASE") != "" {
		randomRequests(t)
		return
	}
	lab.EveryUser(t, randomRequests, "codex")
}

func randomRequests(t *testing.T) {
	cases, first, whole := 400, 0, 40*time.Second
	if os.Getuid() != 0 {
		cases, whole = 40, 20*time.Second
	}
	if os.Getenv("THOLE_SOAK") != "" {
		cases, whole = 150*cases, 5*time.Minute
	}
	if one := os.Getenv("THOLE_CASE"); one != "" {
		n, err := strconv.Atoi(one)
		if err != nil {
			t.Fatal(err)
		}
		first, cases, whole = n, n+1, 0
	}
	base := int(time.Now().Unix()) << 16 // of the numbers of further cases
	t.Logf("%d fixed cases, then from %d until %v are over", cases-first, base, whole)
	ours, _ := serve(t, execserver.Config{Environ: []string{"PATH=/usr/bin:/bin", "HOME=/"}})
	real, _ := realServer(t)
	site := httpSite(t)
	const workers = 24 // the real server answers each connection every 40 ms
	var next, listed sync.Mutex
	end, others := time.Now().Add(whole), false // of further cases
	began := first
	used := map[string]int{}
	var wg sync.WaitGroup
	for range min(workers, cases-first) {
		sides := []*side{{url: ours, dir: t.TempDir(), site: site}, {url: real, dir: t.TempDir(), site: site}}
		wg.Go(func() {
			for {
				next.Lock()
				n := first
				first++
				if n == cases && !others {
					first, n, others = base+1, base, true
				}
				over := others && !time.Now().Before(end)
				next.Unlock()
				if over {
					return
				}
				requests := randomCase(rand.New(rand.NewPCG(uint64(n), 7)), n)
				var got [2][]outcome
				var both sync.WaitGroup
				for i, s := range sides {
					both.Go(func() { got[i] = s.run(t, requests) })
				}
				both.Wait()
				for i := range requests {
					why := compareOutcomes(requests[i], got[0][i], got[1][i])
					if why == "" {
						continue
					}
					if why == unlisted {
						if got[0][i].Tree == got[1][i].Tree {
							got[0][i].Tree, got[1][i].Tree = "", ""
						}
						t.Errorf("case %d: %.600s\n ours %+v\n real %+v", n, requests[i], got[0][i], got[1][i])
					}
					listed.Lock()
					used[why]++
					listed.Unlock()
					for _, s := range sides {
						s.cut()
					}
					break // what follows may differ because of it
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d cases", cases-began+first-base)
	for why, n := range used {
		t.Logf("%d listed: %s", n, why)
	}
}

// side is one of the two servers with a directory of its own.
type side struct {
	url, dir, site string
	w              *wire
	cases          int
}

// aConnection is how many cases share one: files that they leave open count.
const aConnection = 60

// outcome is what became of a request. The code of an error counts, its text does not.
type outcome struct {
	ID     string
	Code   int
	Result any
	Output string // of a process that was started, or the body that was streamed
	Steps  string // answers to the messages before the last
	Exit   string
	Closed bool // the connection ended
	Tree   string
	Text   string // of an error, to be read
}

// run prepares the directory and plays the requests one after the other.
func (s *side) run(t *testing.T, requests []string) []outcome {
	prepare(t, s.dir)
	if s.cases++; s.cases%aConnection == 0 {
		s.cut()
	}
	if s.w == nil {
		s.w = handshake(t, s.url)
	}
	all := make([]outcome, 0, len(requests))
	for _, r := range requests {
		var o outcome
		if s.w == nil {
			o.Closed = true
			all = append(all, o)
			continue
		}
		o = s.ask(t, strings.NewReplacer("@DIR@", s.dir, "@SITE@", s.site).Replace(r))
		o.Tree = tree(s.dir)
		if o.Closed {
			s.cut()
		}
		all = append(all, o)
	}
	return all
}

func (s *side) cut() {
	if s.w != nil {
		s.w.cut()
		s.w = nil
	}
}

// Several messages of one request are separated by thenSend, each sent when the one before
// was answered, and by afterEnd, when the process has ended as well.
const thenSend, afterEnd = "\n---\n", "\n===\n"

// ask sends one message, or several, and takes the answers; a process that it starts runs to
// its end. A notification has no answer, so a question follows it.
func (s *side) ask(t *testing.T, request string) (o outcome) {
	request, rest, ended := cutRequest(request)
	s.w.send([]byte(request), false)
	var shape map[string]json.RawMessage
	_ = json.Unmarshal([]byte(request), &shape)
	if _, has := shape["id"]; !has && shape["method"] != nil {
		s.w.send([]byte(`{"id":"fence","method":"environment/status"}`), false)
	}
	output, answered, running := map[string]string{}, false, false
	events, last := uint64(0), uint64(0) // of the process; the real server's closed may come before others
	limit := time.After(20 * time.Second)
	streams := strings.Contains(request, `"streamResponse":true`)
	for !answered || running || rest != "" {
		if rest != "" && answered && (!running || !ended) {
			o.Steps += fmt.Sprintln(o.Code, o.Result)
			o.Code, answered = 0, false
			request, rest, ended = cutRequest(rest)
			s.w.send([]byte(request), false)
		}
		select {
		case m := <-s.w.in:
			switch m.Method {
			case exec.NotifyOutput:
				var p exec.OutputParams
				_ = json.Unmarshal(m.Params, &p)
				output[p.Stream] += string(p.Chunk)
				events++
			case exec.NotifyExited:
				var p exec.ExitedParams
				_ = json.Unmarshal(m.Params, &p)
				if o.Exit = strconv.Itoa(p.ExitCode); p.SandboxDenied != nil && *p.SandboxDenied {
					o.Exit += " denied"
				}
				events++
			case exec.NotifyClosed:
				var p exec.ClosedParams
				_ = json.Unmarshal(m.Params, &p)
				events, last = events+1, p.Seq
			case exec.NotifyBodyDelta:
				var p exec.BodyDeltaParams
				_ = json.Unmarshal(m.Params, &p)
				output["body"] += string(p.Delta)
				if running = !p.Done; p.Error != nil {
					output["body"] += " failed"
				}
			case "":
				answered, o.ID = true, string(m.ID)
				if m.Error != nil {
					o.Code, o.Text = m.Error.Code, m.Error.Message
					break
				}
				o.Result = s.normal(m.Result)
				running = running || strings.Contains(string(m.Result), `"sandboxType"`) || streams && strings.Contains(string(m.Result), `"headers"`)
			}
			if last > 0 && events == last {
				running = false
			}
		case <-s.w.closed:
			o.Closed = true
			return o
		case <-limit:
			t.Errorf("no end of %.300s at %s", request, s.url)
			o.Closed = true
			return o
		}
	}
	for _, k := range []string{exec.StreamStdout, exec.StreamStderr, exec.StreamPTY, "body"} {
		if output[k] != "" {
			o.Output += k + ": " + strings.ReplaceAll(output[k], s.dir, "@DIR@")
		}
	}
	return o
}

// cutRequest returns the first message, those after it, and whether they wait for the end.
func cutRequest(request string) (first, rest string, ended bool) {
	i := strings.Index(request, thenSend)
	if j := strings.Index(request, afterEnd); j >= 0 && (i < 0 || j < i) {
		return request[:j], request[j+len(afterEnd):], true
	}
	if i < 0 {
		return request, "", false
	}
	return request[:i], request[i+len(thenSend):], false
}

// normal hides what may differ: the directory, times, sizes of directories, the order of
// names and of headers.
func (s *side) normal(raw json.RawMessage) any {
	r := &replay{}
	var v any
	_ = json.Unmarshal([]byte(strings.ReplaceAll(string(raw), s.dir, "@DIR@")), &v)
	if m, ok := v.(map[string]any); ok && m["sandboxType"] != nil {
		delete(m, "sandboxType")
	}
	return r.normal(v)
}

// prepare makes the directory that a case begins with.
func prepare(t *testing.T, dir string) {
	for _, err := range []error{
		os.RemoveAll(filepath.Join(dir, "d")), os.MkdirAll(filepath.Join(dir, "d", "sub", "deep"), 0o755), os.MkdirAll(filepath.Join(dir, "d", ".hidden"), 0o755),
		os.WriteFile(filepath.Join(dir, "d", "a"), []byte("alpha"), 0o644), os.WriteFile(filepath.Join(dir, "d", "sub", "b"), []byte("beta"), 0o600),
		os.WriteFile(filepath.Join(dir, "d", "empty"), nil, 0o644), os.WriteFile(filepath.Join(dir, "d", ".hidden", "h"), []byte("h"), 0o644),
		os.Symlink("a", filepath.Join(dir, "d", "link")), os.Symlink("sub", filepath.Join(dir, "d", "dirlink")), os.Symlink("nowhere", filepath.Join(dir, "d", "dangling")),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}

// tree is what a directory holds.
func tree(dir string) string {
	var b strings.Builder
	_ = filepath.Walk(filepath.Join(dir, "d"), func(path string, st os.FileInfo, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be seen is left out on both sides
		}
		if name := st.Name(); name == ".git" || name == ".codex" || name == ".agents" || name == ".aws" {
			return nil // what holds the place of one while a sandbox runs
		}
		text := ""
		if st.Mode().IsRegular() {
			raw, _ := os.ReadFile(path)
			text = string(raw)
		}
		fmt.Fprintf(&b, "%s %s %.200q\n", strings.TrimPrefix(path, dir), st.Mode(), text)
		return nil
	})
	return b.String()
}

// compareOutcomes returns nothing when two outcomes are equal, why they may differ when
// that is listed, and otherwise unlisted.
func compareOutcomes(request string, ours, real outcome) string {
	same := ours
	if same.Text = real.Text; reflect.DeepEqual(same, real) {
		return ""
	}
	for _, d := range listedDifferences {
		if d.is(request, ours, real) {
			return d.why
		}
	}
	return unlisted
}

const unlisted = "not listed"
