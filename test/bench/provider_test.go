//go:build linux

package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/claude"
	"github.com/tholehq/thole/internal/provider/codex"
	"github.com/tholehq/thole/internal/provider/opencode"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// modelVar makes TestModelProcess the scripted model.
const modelVar = "THOLE_BENCH_MODEL"

// TestModelProcess is no test but the scripted model at full speed, until its
// standard input ends.
func TestModelProcess(t *testing.T) {
	if os.Getenv(modelVar) == "" {
		t.Skip("the model of other tests")
	}
	sim := modelsim.Start(t)
	fmt.Println("model at " + sim.URL() + " .")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// model runs the scripted model in a process of its own, so that its work is not
// counted as the driver's.
func model(t testing.TB) string {
	t.Helper()
	cmd := osexec.Command(os.Args[0], "-test.run=^TestModelProcess$")
	cmd.Env = append(os.Environ(), modelVar+"=1", "THOLE_BENCH=")
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _, _ = io.Copy(io.Discard, out); _ = cmd.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, url, ok := strings.Cut(lines.Text(), "model at "); ok {
			return strings.TrimSuffix(url, " .")
		}
	}
	t.Fatal("the scripted model told no address")
	return ""
}

// agentDriver is one driver under measurement on its real CLI and the scripted model.
type agentDriver struct {
	name, cli string // for people
	provider  provider.Provider
	config    func(url string, cfg *provider.SessionConfig) error
	// bare starts the CLI without a driver and returns what times one turn of it.
	bare func(t testing.TB, cfg provider.SessionConfig) func() time.Duration
}

func agentDrivers(t testing.TB) []agentDriver {
	t.Helper()
	env := func(of func(string) []string, model string) func(string, *provider.SessionConfig) error {
		return func(url string, cfg *provider.SessionConfig) error {
			for _, kv := range of(url) {
				k, v, _ := strings.Cut(kv, "=")
				cfg.Env[k] = v
			}
			cfg.Model = model
			return nil
		}
	}
	return []agentDriver{
		{"codex driver", "codex " + lab.CodexVersion, codex.New(lab.Codex(t)), func(url string, cfg *provider.SessionConfig) error {
			cfg.Model = modelsim.Model
			return modelsim.CodexConfig(cfg.Data, url)
		}, bareCodex},
		{"claude driver", "claude " + lab.ClaudeVersion, claude.New(claude.Config{Binary: lab.Claude(t)}), env(modelsim.ClaudeEnv, modelsim.ClaudeModel), bareClaude},
		{"opencode driver", "opencode " + lab.OpencodeVersion, opencode.New(opencode.Config{Binary: lab.Opencode(t)}), env(modelsim.OpencodeEnv, "sim/"+modelsim.Model), bareOpencode},
	}
}

// session opens one that ends with the test.
func (d agentDriver) session(t testing.TB, url string) provider.Session {
	t.Helper()
	return openSession(t, d.provider, d.place(t, url))
}

// place makes the directories of a session.
func (d agentDriver) place(t testing.TB, url string) provider.SessionConfig {
	t.Helper()
	root := t.TempDir()
	cfg := provider.SessionConfig{Dir: filepath.Join(root, "workspace"), Data: filepath.Join(root, "data"), Auth: filepath.Join(root, "auth"), Settings: event.Settings{Profile: thole.ProfileFull},
		Env: map[string]string{"HOME": root, "PATH": "/usr/local/bin:/usr/bin:/bin"}}
	err := os.MkdirAll(cfg.Dir, 0o755)
	if err == nil {
		err = d.config(url, &cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func openSession(t testing.TB, p provider.Provider, cfg provider.SessionConfig) provider.Session {
	t.Helper()
	s, err := p.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// turnOf runs a prompt and fails the benchmark when it does not complete.
func turnOf(t testing.TB, s provider.Session, prompt string, see func(event.Event)) {
	t.Helper()
	var end provider.Ended
	err := s.Run(context.Background(), provider.Turn{ID: thole.NewID[thole.TurnID](time.Now()), Input: thole.Text(prompt)}, func(e event.Event) {
		if e.Kind == event.TurnEnded {
			end = provider.EndedOf(e)
		}
		see(e)
	})
	if err != nil || end.Outcome != thole.OutcomeCompleted {
		t.Fatalf("turn: %v, %+v", err, end)
	}
}

func TestProviderMemory(t *testing.T) {
	s := agentDrivers(t)[0].session(t, model(t))
	size := short(2_000_000, 10_000_000)
	Case{
		Name: "codex driver: live heap while a command writes 10 MB", Unit: "MB", Peer: "the output itself",
		Promise: 0.5, Loose: 4,
		Ours: func() float64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			base, peak, told := m.HeapAlloc, m.HeapAlloc, 0
			turnOf(t, s, "sim: run head -c "+strconv.Itoa(size)+" /dev/zero | tr '\\0' 'x' | fold -w 99 ;; say done", func(e event.Event) {
				if told += len(e.Delta); e.Kind == event.ItemDelta && told%(1<<20) < len(e.Delta) || e.Kind == event.ItemCompleted {
					runtime.GC()
					runtime.ReadMemStats(&m)
					peak = max(peak, m.HeapAlloc)
				}
				if c := e.Item; e.Kind == event.ItemCompleted && c.Command != nil && len(c.Command.Output) > provider.OutputLimit {
					t.Fatalf("kept %d bytes", len(c.Command.Output))
				}
			})
			t.Logf("%d bytes told as deltas", told)
			return float64(peak-base) / 1e6
		},
		Theirs: func() float64 { return float64(size) / 1e6 },
		Note:   "live heap of this process above its start, garbage collected first; codex told this fast output in the completed item, hardly in deltas, so streaming itself is not exercised",
	}.Run(t)
}

func TestProviderWarmStart(t *testing.T) {
	url := model(t)
	for _, d := range agentDrivers(t) {
		s := d.session(t, url)
		bare := d.bare(t, d.place(t, url))
		turns := short(2, 10)
		median := func(turn func() time.Duration) func() float64 {
			return func() float64 {
				var times []float64
				for range turns {
					times = append(times, float64(turn().Microseconds())/1e3)
				}
				return middle(times)
			}
		}
		Case{
			Name: d.name + ": start of a turn in a warm process", Unit: "ms", Peer: "a bare client of " + d.cli,
			Promise: 1.1, Loose: 3,
			Ours: median(func() (first time.Duration) {
				began := time.Now()
				turnOf(t, s, "sim: say hi", func(e event.Event) {
					if first == 0 && e.Kind == event.ItemStarted {
						first = time.Since(began)
					}
				})
				return first
			}),
			Theirs: median(bare),
			Note:   "from the call to the first item of the answer; nearly all of it is the CLI and the model on both sides, so other work on the CPUs moves the ratio by more than the promise leaves",
		}.Run(t)
	}
}
