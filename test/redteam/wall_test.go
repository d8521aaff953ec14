//go:build linux

// Package redteam puts an attacker, or a real CLI, into an agent's box and sees what
// it gains.
package redteam

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/system"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/opengate"
)

// rig is one executor with one real CLI in its box, on a scripted model.
type rig struct {
	*testing.T
	client    *executorclient.Client
	provider  string
	model     string
	workspace string
	grant     provider.Grant
	sim       *modelsim.Sim
}

var providers = []string{"codex", "claude", "opencode"}

func newRig(t *testing.T, name string) *rig { t.Helper(); return newRigOf(t, name, lab.Thole(t)) }

// newRigOf is newRig with another program.
func newRigOf(t *testing.T, name, binary string) *rig {
	t.Helper()
	return newRigIn(t, name, binary, thole.Source{})
}

// newRigIn is newRigOf with a source of files.
func newRigIn(t *testing.T, name, binary string, files thole.Source) *rig {
	t.Helper()
	cli, err := filepath.EvalSymlinks(map[string]func(testing.TB) string{"codex": lab.Codex, "claude": lab.Claude, "opencode": lab.Opencode}[name](t))
	if err != nil {
		t.Fatal(err)
	}
	sim := modelsim.Start(t)
	root, err := os.MkdirTemp("", "ex") // short: it holds sockets
	if err != nil {
		t.Fatal(err)
	}
	driver := local.New(local.Config{Root: root, Binary: binary, Bwrap: lab.Bwrap(t), Egress: wire.Egress{Policy: "gateway"}, Gateway: opengate.Serve(t, root, sim.URL()), Tools: func() local.Tools {
		return local.Tools{Readable: []string{cli}, Env: map[string]string{config.Variable("providers." + name): cli}}
	}})
	id := thole.NewID[thole.ExecutorID](time.Now())
	t.Cleanup(func() {
		if err := driver.Remove(context.Background(), id); err != nil {
			t.Error(err)
		}
		os.RemoveAll(root)
	})
	if err := driver.Create(t.Context(), executor.Spec{ID: id, Thread: "thread", Scope: executor.ScopeThread, Files: files}); err != nil {
		t.Fatal(err)
	}
	info, err := driver.Start(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, sim: sim, provider: name, model: modelsim.Model, workspace: filepath.Join(root, string(id), "workspace"), client: executorclient.Dial(info.Endpoint, info.Token)}
	t.Cleanup(func() { r.client.Close() })
	r.grant = r.granted()
	return r
}

// granted leads a CLI to the scripted model.
func (r *rig) granted() provider.Grant {
	r.Helper()
	switch r.provider {
	case "claude":
		r.model = modelsim.ClaudeModel
	case "opencode":
		r.model = "sim/" + modelsim.Model
	}
	g, err := system.DemoGrant(r.provider, "tgw_of_the_rig")
	if err != nil {
		r.Fatal(err)
	}
	return g
}

// play takes a prompt to its end; whatever is asked is answered by answer.
func (r *rig) play(profile thole.Profile, prompt string, answer func(event.Ask) event.Decision) []event.Event {
	r.Helper()
	return r.run(wire.RunRequest{
		Turn:    provider.Turn{Input: thole.Text(prompt), Settings: event.Settings{Profile: profile}},
		Session: wire.SessionSettings{Settings: event.Settings{Profile: profile, Model: r.model}}, Grant: r.grant,
	}, answer)
}

func (r *rig) run(req wire.RunRequest, answer func(event.Ask) event.Decision) (all []event.Event) {
	r.Helper()
	req.Turn.ID, req.For = thole.NewID[thole.TurnID](time.Now()), thole.NewID[thole.TurnID](time.Now())
	req.Thread, req.Provider = "thread", r.provider
	if _, err := r.client.Run(r.Context(), req); err != nil {
		r.Fatal(err)
	}
	err := r.client.Events(r.Context(), req.Turn.ID, 0, func(batch []wire.LogEvent) error {
		for _, ev := range batch {
			all = append(all, ev.Event)
			if ev.Event.Kind == event.AskRequested {
				d := answer(*ev.Event.Ask)
				if d == "" {
					continue
				}
				_, _ = r.client.Reply(r.Context(), wire.ReplyRequest{Run: req.Turn.ID, Ask: ev.Event.Ask.ID, Answer: event.Answer{Decision: d}})
			}
		}
		return nil
	})
	if err != nil {
		r.Fatal(err)
	}
	return all
}

func (r *rig) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(r.workspace, name))
	return err == nil
}

func count(all []event.Event, kind event.Kind) (n int) {
	for _, e := range all {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func end(all []event.Event) event.Event { return all[len(all)-1] }

func allow(event.Ask) event.Decision { return event.DecisionAllow }
func deny(event.Ask) event.Decision  { return event.DecisionDeny }

// What each profile permits, with the real CLIs in the box.
func TestProfiles(t *testing.T) {
	for _, name := range providers {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, name)
			// The one who answers is careless: the box holds what the profile promises.
			all := r.play(thole.ProfilePlan, "sim: run echo x > made ;; write made2 text ;; say planned", allow)
			for _, file := range []string{"made", "made2"} {
				if r.exists(file) {
					t.Errorf("plan wrote %s: %+v", file, all)
				}
			}
			if e := end(all); e.Outcome == thole.OutcomeFailed {
				t.Errorf("plan ended %s: %+v", e.Outcome, e.Error)
			}

			early := false
			all = r.play(thole.ProfileAsk, "sim: run echo x > asked ;; say ok", func(event.Ask) event.Decision {
				early = early || r.exists("asked")
				return event.DecisionAllow
			})
			if count(all, event.AskRequested) != 1 || early || !r.exists("asked") || end(all).Outcome != thole.OutcomeCompleted {
				t.Errorf("ask asked %d times, too late %v, made %v, ended %s %+v", count(all, event.AskRequested), early, r.exists("asked"), end(all).Outcome, end(all).Error)
			}

			all = r.play(thole.ProfileEdit, "sim: write edited text ;; say ok", deny)
			if count(all, event.AskRequested) != 0 || !r.exists("edited") || end(all).Outcome != thole.OutcomeCompleted {
				t.Errorf("edit asked %d times, made %v, ended %s %+v", count(all, event.AskRequested), r.exists("edited"), end(all).Outcome, end(all).Error)
			}
			if name == "codex" { // whose edit runs commands too, alone as here
				all = r.play(thole.ProfileEdit, "sim: run echo x > ran ;; say ok", deny)
				if count(all, event.AskRequested) != 0 || !r.exists("ran") {
					t.Errorf("edit asked %d times for a command, made %v", count(all, event.AskRequested), r.exists("ran"))
				}
			}
		})
	}
}

// An agent cannot answer its own approval: not through executord, which it does not
// find (the same search without walls does, see internal/executor/local).
func TestAnAgentDoesNotAnswerItself(t *testing.T) {
	const search = `found=; for p in /proc/[0-9]*; do tr '\0' ' ' < $p/cmdline 2>/dev/null | grep -q 'executor [s]erve' && found=1; done; ` +
		`ls /run/thole/state /run/thole/here >/dev/null 2>&1 && found=1; grep -q 'd[.]sock' /proc/net/unix && found=1; echo "found:$found" > searched`
	lab.EveryUser(t, func(t *testing.T) {
		for _, name := range providers {
			r := newRig(t, name)
			all := r.play(thole.ProfileFull, "sim: run "+search+" ;; say ok", allow)
			got, err := os.ReadFile(filepath.Join(r.workspace, "searched"))
			if err != nil || string(got) != "found:\n" {
				t.Errorf("%s: the agent says %q, %v: %+v", name, got, err, end(all))
			}
		}
	}, providers...)
}

// answerOpencode is an agent's program that answers approvals at opencode's own server,
// whose password a child process can read.
const answerOpencode = `import base64, glob, json, os, time, urllib.request
password = ""
while not password:
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            for kv in open(path, "rb").read().split(b"\0"):
                if kv.startswith(b"OPENCODE_SERVER_PASSWORD="):
                    password = kv.split(b"=", 1)[1].decode()
        except OSError:
            pass
auth = "Basic " + base64.b64encode(("opencode:" + password).encode()).decode()
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
def call(port, path, body=None):
    req = urllib.request.Request("http://127.0.0.1:%d%s" % (port, path), data=None if body is None else json.dumps(body).encode(), headers={"Authorization": auth, "Content-Type": "application/json"})
    return json.load(opener.open(req, timeout=5))
end = time.time() + 60
while time.time() < end:
    for line in open("/proc/net/tcp").read().splitlines()[1:]:
        f = line.split()
        if f[3] != "0A":
            continue
        try:
            for ask in call(int(f[1].split(":")[1], 16), "/permission?directory=/workspace"):
                call(int(f[1].split(":")[1], 16), "/permission/" + ask["id"] + "/reply?directory=/workspace", {"reply": "once"})
                open("/workspace/answered", "w").write("yes")
                os._exit(0)
        except Exception:
            pass
    time.sleep(0.05)
`

// opencode's server can be asked by its own children, who are the same principal. Such
// an answer is found out: it comes without the server's receipt, by which the
// thread knows that the agent gave it (internal/thread).
func TestAnAnswerOfTheAgentsIsNotOurs(t *testing.T) {
	r := newRig(t, "opencode")
	if err := os.WriteFile(filepath.Join(r.workspace, "answer.py"), []byte(answerOpencode), 0o644); err != nil {
		t.Fatal(err)
	}
	asked := 0
	all := r.play(thole.ProfileAsk, "sim: run (setsid python3 answer.py >/dev/null 2>&1 &) ;; run echo x > made ;; say ok", func(event.Ask) event.Decision {
		if asked++; asked == 1 {
			return event.DecisionAllow // a person lets the agent start something
		}
		return "" // and answers nothing more
	})
	if !r.exists("answered") {
		t.Fatalf("the attack does not work any more: nothing is proven: %+v", end(all))
	}
	var last *event.Event
	for i, e := range all {
		if e.Kind == event.AskResolved {
			last = &all[i]
		}
	}
	if asked != 2 || last == nil || last.Receipt != "" {
		t.Errorf("%d asks; the last was resolved as %+v", asked, last)
	}
}
