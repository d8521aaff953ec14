// Package providertest is the conformance suite of the provider port. Every
// driver passes every row, live, with its real CLI on the scripted model; where
// a capability is not validated the row asserts the declared degradation
// instead. It is imported by tests only.
package providertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/provider"
)

// Harness plugs one driver into the suite.
type Harness struct {
	// New makes the provider on the real CLI; it skips the test when the CLI is
	// missing, and fails it when CI=true.
	New func(t testing.TB) provider.Provider
	// Configure points a session at the scripted model: environment, files in
	// cfg.Data, cfg.Model. It is called once per session, before Open.
	Configure func(t testing.TB, modelURL string, cfg *provider.SessionConfig)
	// At makes the provider on another binary; nil skips the rows about missing,
	// old and unknown CLIs.
	At func(t testing.TB, binary string) provider.Provider
	// VersionText is what the CLI prints for --version, given a version.
	VersionText func(version string) string
	// Login makes a credential file with a secret in it, as the CLI reads it from
	// SessionConfig.Auth; nil when it has none.
	Login func(secret string) (name string, data []byte)
	// Overflow is the directive that makes the model report a context that is too
	// long in the CLI's dialect.
	Overflow string
	// AskTool is the tool by which the model asks the user; OneChoice says that its
	// questions take one of their options only.
	AskTool   string
	OneChoice bool
	// MCP adds an MCP server to a session and returns how the model calls its tool
	// "size"; nil when the provider takes none. NoElicitation says that the CLI lets
	// such servers ask nothing.
	MCP           func(t testing.TB, cfg *provider.SessionConfig, server, binary string, env map[string]string) (tool string)
	NoElicitation bool
	// LongRetries says that the CLI repeats failed calls for longer than a test
	// may take, unless the service names a shorter wait: the rows do, or expect
	// the retry to be reported and stop.
	LongRetries bool
	// CountsCut says that the CLI counts a call that was cut and repeated, with the
	// tokens it had used, if its beginning arrived before the cut.
	CountsCut bool
	// SaysJSON says that the model's service, and not the CLI, sees to it that an answer
	// satisfies a schema.
	SaysJSON bool
	// NoModel says that there is no model in the provider (the scripted one).
	NoModel bool
	// Confined runs every row as a hardened container would: no new privileges, no
	// namespaces.
	Confined bool
	// Only, when set, chooses rows: a second driver of the same CLI need not repeat
	// all of them in every run.
	Only func(row string) bool
	// Skip names rows that cannot apply, with the reason.
	Skip map[string]string
}

// Soak runs the whole suite confined, when the long tests run.
func Soak(t *testing.T, h Harness) {
	if os.Getenv("THOLE_SOAK") == "" {
		t.Skip("takes as long as the suite; set THOLE_SOAK=1")
	}
	h.Confined = true
	Run(t, h)
}

// Row is one row of the suite.
type Row struct {
	Name string
	Run  func(b *Bench)

	shares bool
}

// alone is a row with a workspace, a home and processes of its own.
func alone(name string, run func(*Bench)) Row { return Row{name, run, false} }

// together is a row whose turns can be some of many: it opens the session that all
// such rows of its profile share, and does not close it. Starting a CLI costs
// seconds; besides, a session has to bear it.
func together(name string, run func(*Bench)) Row { return Row{name, run, true} }

// Run runs the whole suite.
func Run(t *testing.T, h Harness) {
	one := h.New(t) // it asks the CLI for its version once
	h.New = func(testing.TB) provider.Provider { return one }
	var shared, own []Row
	for _, rows := range [][]Row{streamRows(), toolRows(), askRows(), stopRows(), sessionRows(), inventoryRows(), faultRows(), lifecycleRows(), profileRows(), compactRows(), schemaRows()} {
		for _, row := range rows {
			switch {
			case h.Only != nil && !h.Only(row.Name):
			case row.shares:
				shared = append(shared, row)
			default:
				own = append(own, row)
			}
		}
	}
	t.Run("together", func(t *testing.T) {
		t.Parallel() // with other rows: they share nothing, and mostly wait for the CLI
		b := NewBench(t, h)
		for _, row := range shared {
			if b.sessions == nil {
				b.sessions = map[thole.Profile]provider.Session{}
			}
			if !t.Run(row.Name, func(t *testing.T) { h.run(t, row, b.next(t)) }) {
				b.sessions = nil // whatever went wrong is not the next row's fault
			}
		}
	})
	for _, row := range own {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			h.run(t, row, nil)
		})
	}
}

// run runs a row on a bench, or on one of its own.
func (h Harness) run(t *testing.T, row Row, b *Bench) {
	if why, ok := h.Skip[row.Name]; ok {
		t.Skip(why)
	}
	if b == nil {
		b = NewBench(t, h)
	}
	row.Run(b)
}

// Bench is one row's own workspace, home and scripted model.
type Bench struct {
	testing.TB
	Harness  Harness
	Provider provider.Provider
	Sim      *modelsim.Sim
	Info     provider.Info
	// Config is what sessions open with; a row may change it before Open.
	Config provider.SessionConfig

	sessions map[thole.Profile]provider.Session // of rows that share them
	group    *Bench                             // of the rows together, nil for one alone
}

// next is the bench for one more row in the same sessions, with an empty workspace.
func (b *Bench) next(t testing.TB) *Bench {
	t.Helper()
	entries, err := os.ReadDir(b.Config.Dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(b.Config.Dir, e.Name())))
	}
	if err != nil {
		t.Fatal(err)
	}
	row := *b
	row.TB, row.group = t, b
	return &row
}

// NewBench makes a bench.
func NewBench(t testing.TB, h Harness) *Bench {
	t.Helper()
	b := &Bench{TB: t, Harness: h, Provider: h.New(t)}
	if !h.NoModel {
		b.Sim = modelsim.Start(t)
	}
	root := benchDir(t)
	b.Config = provider.SessionConfig{
		Thread:   thole.NewID[thole.ThreadID](time.Now()),
		Dir:      filepath.Join(root, "workspace"),
		Data:     filepath.Join(root, "data"),
		Auth:     filepath.Join(root, "auth"),
		Settings: event.Settings{Profile: thole.ProfileFull},
		Env: map[string]string{
			"HOME": filepath.Join(root, "home"),
			"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
			"LANG": "C.UTF-8",
		},
	}
	for _, d := range []string{b.Config.Dir, b.Config.Data, b.Config.Auth, b.Config.Env["HOME"]} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b.configure(&b.Config)
	ctx, cancel := context.WithTimeout(context.Background(), rowLimit)
	defer cancel()
	if b.Info = b.Provider.Probe(ctx); !b.Info.Available {
		t.Fatalf("probe: %s (%s)", b.Info.Problem, b.Info.Fix)
	}
	b.confine(h.Confined)
	return b
}

// benchDir is outside the temporary directory: below it codex refuses to put the
// helpers of its sandbox, and profiles would be tested without one.
func benchDir(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err == nil {
		err = os.MkdirAll(cache, 0o700)
	}
	if err != nil {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(cache, "thole-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (b *Bench) configure(cfg *provider.SessionConfig) {
	if b.Harness.Configure != nil {
		url := ""
		if b.Sim != nil {
			url = b.Sim.URL()
		}
		b.Harness.Configure(b, url, cfg)
	}
}

// rowLimit bounds each wait of a row: generous, because the machine may be busy
// and some CLIs take seconds to start.
const rowLimit = 3 * time.Minute

// Open opens a session that ends with the row, or with the last of the rows
// together, which change no more of it than its profile.
func (b *Bench) Open(change ...func(*provider.SessionConfig)) provider.Session {
	b.Helper()
	cfg := b.Config
	for _, c := range change {
		c(&cfg)
	}
	if b.group != nil {
		if s := b.group.sessions[cfg.Profile]; s != nil {
			return s
		}
	}
	s, err := b.TryOpen(change...)
	if err != nil {
		b.Fatalf("open: %v (hint: %s)", err, thole.HintOf(err))
	}
	if b.group != nil {
		b.group.sessions[cfg.Profile] = s
	}
	return s
}

// TryOpen is Open with the error.
func (b *Bench) TryOpen(change ...func(*provider.SessionConfig)) (provider.Session, error) {
	b.Helper()
	cfg := b.Config
	for _, c := range change {
		c(&cfg)
	}
	ctx, cancel := context.WithTimeout(context.Background(), rowLimit)
	defer cancel()
	s, err := b.Provider.Open(ctx, cfg)
	if err == nil {
		owner := b.TB
		if b.group != nil {
			owner = b.group.TB
		}
		owner.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

// Profile changes the profile of a session to open.
func Profile(p thole.Profile) func(*provider.SessionConfig) {
	return func(c *provider.SessionConfig) { c.Profile = p }
}

// Resume continues a native session.
func Resume(native string) func(*provider.SessionConfig) {
	return func(c *provider.SessionConfig) { c.Resume = native }
}

// File returns a workspace file's content, "" when it does not exist.
func (b *Bench) File(name string) string {
	b.Helper()
	data, err := os.ReadFile(filepath.Join(b.Config.Dir, name))
	if err != nil && !os.IsNotExist(err) {
		b.Fatal(err)
	}
	return string(data)
}
