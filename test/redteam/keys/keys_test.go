//go:build linux

package keys

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// inside is what an agent does to find a key, or anything of the host's that leads to
// one: it looks into every process and every file that it sees.
const inside = `import json, os, sys
head, tail = %q[::-1].encode(), %q[::-1].encode() # together they would be found in here
found, tokens, files, processes = [], set(), 0, 0
def look(place, text):
    at = text.find(head)
    while at >= 0:
        if text.startswith(tail, at + len(head)):
            found.append(place + ": " + repr(text[at + len(head):][:60]))
            break
        at = text.find(head, at + 1)
    at = text.find(b"tgw_")
    if at >= 0: tokens.add(place)
for pid in [p for p in os.listdir("/proc") if p.isdigit()] + ["self"]:
    processes += 1
    for name in ("environ", "cmdline", "maps", "stack"):
        try: look("/proc/%%s/%%s" %% (pid, name), open("/proc/%%s/%%s" %% (pid, name), "rb").read())
        except OSError: pass
    try:
        mem = open("/proc/%%s/mem" %% pid, "rb", 0)
        for line in open("/proc/%%s/maps" %% pid):
            span, rights = line.split()[:2]
            a, b = (int(x, 16) for x in span.split("-"))
            if pid in ("self", str(os.getpid())) or "r" not in rights or b - a > 1 << 26 or "[v" in line: continue
            try: mem.seek(a); look("/proc/%%s/mem" %% pid, mem.read(b - a))
            except OSError: pass
    except OSError: pass
for top in ("/workspace", "/home", "/root", "/tmp", "/var/tmp", "/run", "/dev/shm", "/etc", "/mnt", "/srv", "/proc/1/root"):
    for dir, dirs, names in os.walk(top):
        if dir.startswith("/proc/1/root/"): dirs[:] = [d for d in dirs if d not in ("proc", "sys", "usr", "lib", "lib64", "bin", "sbin", "opt", "nix")]
        for name in names:
            path = os.path.join(dir, name)
            if not os.path.isfile(path) or os.path.islink(path) or os.path.getsize(path) > 1 << 26: continue
            try: look(path, open(path, "rb").read()); files += 1
            except OSError: pass
json.dump({"found": found, "tokens": sorted(tokens), "files": files, "processes": processes}, open("/workspace/inside.json.new", "w"))
os.rename("/workspace/inside.json.new", "/workspace/inside.json")
while not os.path.exists("/workspace/go"):
    import time; time.sleep(0.1)
`

// A key is known to the server and to the model, and to nobody and nothing else.
func TestKeysStayWithTheServer(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		sim := modelsim.Start(t)
		w := newWorld(t)
		w.agents()
		w.plant(sim.URL())
		w.write(filepath.Join(w.home, "config.toml"), "[gateway]\nrecord = true\n")
		w.begin()
		for name, flags := range map[string][]string{"repository": {"--kind", "git"}, "tool": {"--kind", "mcp"}, "variable": {"--kind", "env"}, "model": {"--provider", "groq"}} {
			w.secret(name, w.key("", "-vault-"+name), flags...)
		}
		s := newSearch(w.word)

		var threads []*thread
		var turns []string
		for _, name := range providers {
			th := w.thread(name, models[name])
			script := fmt.Sprintf(inside, backwards(w.word[:10]), backwards(w.word[10:]))
			threads, turns = append(threads, th), append(turns, th.start(shell("/usr/bin/python3 - <<'END'\n"+script+"END\n", "control-said")))
		}
		for i, name := range providers {
			t.Run(name, func(t *testing.T) {
				th := &thread{world: w.in(t), id: threads[i].id}
				th.inside(turns[i])
				th.outside(s, name)
				th.lay("go", "")
				if got := th.settle(turns[i]); got.Outcome != "completed" {
					t.Errorf("the turn ended %s: %+v", got.Outcome, got.Error)
				}
			})
		}
		w.stored(s, threads)
		w.arrived(sim)
		slices.Sort(s.found)
		for _, f := range slices.Compact(s.found) {
			t.Errorf("a key was found in %s", f)
		}
	}, providers...)
}

func backwards(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// inside waits until the agent has looked around and wants that it found nothing, and
// that it did look.
func (th *thread) inside(id string) {
	th.Helper()
	var text []byte
	poll.Until(th, "the agent's look around", func() bool {
		var got turn
		th.call("GET", "/runs/"+id, nil, &got)
		if got.Outcome != "" {
			th.Fatalf("the turn ended %s: %+v", got.Outcome, got.Error)
		}
		if got.Phase != "running" {
			return false
		}
		var err error
		text, err = os.ReadFile(filepath.Join(th.workspace(), "inside.json"))
		return err == nil
	})
	var got struct {
		Found, Tokens    []string
		Files, Processes int
	}
	decode(th, text, &got)
	for _, f := range got.Found {
		th.Errorf("the agent found a key in %s", f)
	}
	if len(got.Tokens) == 0 || got.Files < 5 || got.Processes < 3 {
		th.Errorf("the agent did not really look: %s", text)
	}
}

// outside looks into the processes and files of a running executor.
func (th *thread) outside(s *search, name string) {
	th.Helper()
	x := string(th.executor().ID)
	pids := th.processes()
	searched, cli := 0, 0
	for _, pid := range pids {
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		controls := []string{x}
		switch filepath.Base(exe) {
		case name:
			controls, cli = append(controls, "control-said"), cli+1
		case "bwrap":
			controls = []string{"bwrap"}
		}
		n := watch(controls...)
		err := s.process(pid, n)
		switch {
		case errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH):
			continue // it ended meanwhile
		case errors.Is(err, os.ErrPermission) && os.Getuid() != 0:
			th.Logf("process %d (%s) keeps its memory from other than root", pid, filepath.Base(exe))
			continue
		case err != nil && n.size > 0 && filepath.Base(exe) != name && filepath.Base(exe) != "thole":
			th.Logf("%v", err) // a program that has no environment
		case err != nil:
			th.Error(err)
		}
		searched++
	}
	if searched < 3 || cli == 0 {
		th.Errorf("only %d of %v were searched, %d of them are %s", searched, pids, cli, name)
	}
	n := watch("control-said", x)
	if err := cmp.Or(s.tree(filepath.Join(th.home, "x", x), n), n.err("the executor's directory")); err != nil {
		th.Error(err)
	}
}

// stored looks into everything that is kept or shown.
func (w *world) stored(s *search, threads []*thread) {
	w.Helper()
	look := func(place string, text []byte, controls ...string) {
		w.Helper()
		n := watch(controls...)
		n.text(text)
		s.text(place, text)
		if err := n.err(place); err != nil {
			w.Error(err)
		}
	}
	for _, th := range threads {
		for _, path := range []string{"", "/snapshot", "/messages", "/items", "/runs", "/network", "/tool-executions", "/files"} {
			var text []byte
			w.call("GET", "/sessions/"+th.id+path, nil, &text)
			look("GET /sessions/ID"+path, text, "{")
		}
		look("the events of a thread", w.events(th), "control-said", th.id)
		out := filepath.Join(w.person, "out-"+th.id)
		w.thole("workspace", "export", "--raw", th.id, out)
		n := watch("looked")
		w.write(filepath.Join(out, "looked"), "looked")
		if err := cmp.Or(s.tree(out, n), n.err("an export")); err != nil {
			w.Error(err)
		}
	}
	for _, path := range []string{"/sessions", "/providers", "/usage", "/metrics", "/ledger"} {
		var text []byte
		w.call("GET", path, nil, &text)
		look("GET "+path, text, map[string]string{"/metrics": "thole_build_info", "/sessions": threads[0].id}[path])
	}
	for _, args := range [][]string{{"doctor"}, {"doctor", "--json"}, {"config", "show", "--origin"}, {"provider", "list"}, {"audit"}, {"executor", "list"}, {"secret", "list"}, {"secret", "show", "model"}, {"secret", "test", "model"}} {
		text, _ := w.try(args...) // doctor may find fault
		look("thole "+strings.Join(args, " "), []byte(text), "\n")
	}
	backup := filepath.Join(w.person, "backup.db")
	w.thole("db", "backup", backup)
	n := watch("control-said")
	if err := cmp.Or(s.tree(filepath.Join(w.home, "calls"), n), n.err("the record of calls")); err != nil {
		w.Error(err)
	}
	for place, path := range map[string]string{"the store": filepath.Join(w.home, "thole.db"), "the store's log": filepath.Join(w.home, "thole.db-wal"), "a backup": backup} {
		text, err := os.ReadFile(path)
		if err != nil {
			w.Error(err)
		}
		look(place, text, threads[0].id)
	}
	if all, err := filepath.Glob("/proc/[0-9]*/cmdline"); err != nil || len(all) == 0 {
		w.Error(err)
	} else {
		for _, path := range all {
			text, _ := os.ReadFile(path)
			s.text(path, text)
		}
	}
	w.crash()
	look("what thole said, and its last words", w.said.Bytes(), "starting thole", "SIGQUIT: quit")
	n = watch(threads[0].id, "control-said")
	if err := cmp.Or(s.tree(w.home, n), n.err("the home")); err != nil {
		w.Error(err)
	}
}

// events are all of a thread up to the end of a turn, as a client gets them.
func (w *world) events(th *thread) []byte {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", w.base+"/sessions/"+th.id+"/events?after=0", nil)
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	var all bytes.Buffer
	for part := make([]byte, 64<<10); !bytes.Contains(all.Bytes(), []byte(`"type":"run.ended"`)); {
		n, err := res.Body.Read(part)
		all.Write(part[:n])
		if err != nil {
			w.Fatalf("%v after %s", err, last(all.Bytes()))
		}
	}
	return all.Bytes()
}

// arrived wants that the model got a key with every request, and no token of the gateway.
func (w *world) arrived(sim *modelsim.Sim) {
	w.Helper()
	apis := map[string]int{}
	for _, r := range sim.Turns() {
		apis[r.API]++
		got := r.Header.Get("Authorization") + r.Header.Get("X-Api-Key")
		if !strings.Contains(got, w.word) {
			w.Errorf("%s %s came with the key %q", r.Method, r.Path, got)
		}
	}
	for _, r := range sim.Requests() {
		if text := fmt.Sprint(r.Header); strings.Contains(text, "tgw_") || bytes.Contains(r.Body, []byte("tgw_")) {
			w.Errorf("the model got a token: %s %s", r.Path, text)
		}
	}
	if len(apis) != 3 {
		w.Errorf("the model was asked in %v", apis)
	}
}
