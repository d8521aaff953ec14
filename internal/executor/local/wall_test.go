package local_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// steal looks for executord the way an agent does that wants to answer its own
// approvals: its process, its descriptors, its memory, its socket, its files.
const steal = `for p in /proc/[0-9]*; do tr '\0' ' ' < $p/cmdline 2>/dev/null | grep -q 'executor [s]erve' || continue
echo executord $p
ls $p/fd >/dev/null 2>&1 && echo descriptors
dd if=$p/mem bs=1 count=0 2>/dev/null && echo memory
cat $p/environ >/dev/null 2>&1 && echo environment
ls $p/root/run/thole/state >/dev/null 2>&1 && echo state
done
grep -q 'd[.]sock' /proc/net/unix && echo socket
ls /run/thole/state /run/thole/here >/dev/null 2>&1 && echo files
echo tried`

// An agent inside finds nothing of executord. The same attack in the layout that had
// one principal, executord and its agent next to one another, finds all of it.
func TestAnAgentFindsNothingOfExecutord(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		t.Run("two principals", func(t *testing.T) {
			b := setup(t, lab.Bwrap(t))
			if got := b.attack(b.start(), steal); got != "tried\n" {
				t.Errorf("the agent found %q", got)
			}
		})
		t.Run("one principal", func(t *testing.T) {
			b := setup(t, "")
			got := b.attack(b.start(), steal)
			for _, want := range []string{"executord", "descriptors", "memory", "environment", "socket"} {
				if !strings.Contains(got, want+"\n") && !strings.Contains(got, want+" ") {
					t.Errorf("without walls the attack does not find the %s: nothing is proven: %q", want, got)
				}
			}
		})
	})
}

// An agent has no network but its model's port and the proxy; the same attack without
// walls reaches the machine.
func TestAnAgentHasANetworkOfItsOwn(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		secret := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "of the host") }))
		defer secret.Close()
		script := fmt.Sprintf(`curl -s -m 5 --noproxy '*' %[1]s; curl -s -m 5 %[1]s; curl -s -m 5 -x http://127.0.0.1:3128 %[1]s | grep -o 'of the host'; ls /sys/class/net 2>/dev/null | grep -v '^lo$'; echo tried`, secret.URL)
		b := setup(t, lab.Bwrap(t))
		if got := b.attack(b.start(), script); strings.Contains(got, "of the host") || !strings.HasSuffix(got, "tried\n") {
			t.Errorf("the agent reached the machine: %q", got)
		}
		open := setup(t, "")
		if got := open.attack(open.start(), script); !strings.Contains(got, "of the host") {
			t.Errorf("without walls the attack does not reach the machine: nothing is proven: %q", got)
		}
	})
}

// What a person named in egress.private is reached, through the proxy.
func TestAPersonOpensAPrivatePlace(t *testing.T) {
	place := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "of the host") }))
	defer place.Close()
	b := setup(t, lab.Bwrap(t))
	b.driver = local.New(local.Config{Root: b.root, Binary: binary, Bwrap: lab.Bwrap(t), Egress: wire.Egress{Policy: "list", Private: []string{strings.TrimPrefix(place.URL, "http://")}}})
	if got := b.attack(b.start(), "NO_PROXY= no_proxy= curl -s -m 20 "+place.URL); got != "of the host" {
		t.Errorf("the agent got %q", got)
	}
}

// A model on the machine's loopback is on the same port inside, and nothing else of
// that loopback is.
func TestAModelOfTheMachineIsReached(t *testing.T) {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "answer to %s", body)
	}))
	defer model.Close()
	b := setup(t, lab.Bwrap(t))
	b.driver = local.New(local.Config{Root: b.root, Binary: binary, Bwrap: lab.Bwrap(t), Egress: wire.Egress{Policy: "gateway"}})
	info := b.start()
	req := b.request("sim: run curl -s -m 20 -d question $OPENAI_BASE_URL/v1", thole.ProfileFull)
	req.Grant = provider.Grant{Env: map[string]string{"OPENAI_BASE_URL": model.URL}}
	if got := b.take(info, req); got != "answer to question" {
		t.Errorf("the agent got %q", got)
	}
}

func (b *bench) request(prompt string, profile thole.Profile) wire.RunRequest {
	return wire.RunRequest{
		Turn: provider.Turn{ID: thole.NewID[thole.TurnID](time.Now()), Input: thole.Text(prompt)}, For: thole.NewID[thole.TurnID](time.Now()),
		Thread: "thread", Provider: "test", Session: wire.SessionSettings{Settings: event.Settings{Profile: profile}},
	}
}

// take runs one request to its end and returns what commands printed.
func (b *bench) take(info executor.Info, req wire.RunRequest) string {
	b.Helper()
	c := executorclient.Dial(info.Endpoint, info.Token)
	defer c.Close()
	if _, err := c.Run(b.Context(), req); err != nil {
		b.Fatal(err)
	}
	var out strings.Builder
	err := c.Events(b.Context(), req.Turn.ID, 0, func(batch []wire.LogEvent) error {
		for _, ev := range batch {
			if it := ev.Event.Item; ev.Event.Kind == event.ItemCompleted && it.Command != nil {
				out.WriteString(it.Command.Output)
			}
			if e := ev.Event; e.Kind == event.TurnEnded && e.Outcome != thole.OutcomeCompleted {
				b.Errorf("ended %+v %+v", e, e.Error)
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return out.String()
}

// A port of the box is nobody else's: neither the machine's nor another executor's.
func TestExecutorsShareNoPorts(t *testing.T) {
	first, second := setup(t, lab.Bwrap(t)), setup(t, lab.Bwrap(t))
	one, other := first.start(), second.start()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
	ln.Close()
	if got := first.run(one, "sim: run cd /tmp && echo mine > page; (setsid python3 -m http.server "+port+" --bind 127.0.0.1 >/dev/null 2>&1 &); for i in $(seq 100); do curl -s --noproxy '*' http://127.0.0.1:"+port+"/page && break; sleep 0.1; done"); got != "mine\n" {
		t.Fatalf("its own page: %q", got)
	}
	if got := second.run(other, "sim: run curl -s -m 3 --noproxy '*' http://127.0.0.1:"+port+"/page || echo refused"); got != "refused\n" {
		t.Errorf("another executor got %q", got)
	}
	if out, err := exec.Command("curl", "-s", "-m", "3", "--noproxy", "*", "http://127.0.0.1:"+port+"/page").Output(); err == nil {
		t.Errorf("the machine got %q", out)
	}
}

// executord meets nothing that an agent left in its temporary files or its home.
func TestExecutordUsesNothingOfTheAgents(t *testing.T) {
	b := setup(t, lab.Bwrap(t))
	b.start()
	pids, err := exec.Command("pgrep", "-f", "executor serve .*/run/thole/here").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := false
	for _, pid := range strings.Fields(string(pids)) {
		env, _ := os.ReadFile(filepath.Join("/proc", pid, "environ"))
		if !strings.Contains(string(env), string(b.id)) {
			continue
		}
		if exe, _ := os.Readlink(filepath.Join("/proc", pid, "exe")); filepath.Base(exe) != "thole" {
			continue
		}
		seen = true
		if !strings.Contains(string(env), "HOME=/run/thole\x00") {
			t.Errorf("executord's home is the agent's: %q", env)
		}
	}
	if !seen {
		t.Fatal("no executord was found: nothing is proven")
	}
}
