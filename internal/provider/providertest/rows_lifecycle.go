package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/provider"
)

// processOf is what sessions with a CLI offer to the suite.
type processOf interface{ PID() int }

func lifecycleRows() []Row {
	return []Row{
		alone("CLI killed in the middle of a turn", func(b *Bench) {
			s := b.Open()
			t := b.Start(s, "sim: run "+orphan+" ;; say ok")
			pid := b.pid("pid")
			if _, ok := s.(processOf); !ok {
				b.Skip("no process behind this provider")
			}
			b.kill(s)
			r := t.Wait()
			b.outcome(r, thole.OutcomeFailed)
			if r.Error().Code != thole.ErrProviderCrashed {
				b.Errorf("error %+v", r.Error())
			}
			b.gone(pid)
			b.outcome(b.Play(s, "sim: say back again"), thole.OutcomeCompleted)
		}),
		alone("CLI missing", func(b *Bench) {
			if b.Harness.At == nil {
				b.Skip("no CLI behind this provider")
			}
			p := b.Harness.At(b, filepath.Join(b.TempDir(), "missing"))
			info := p.Probe(context.Background())
			if info.Available || info.Problem == "" || info.Fix == "" {
				b.Errorf("info %+v", info)
			}
			_, err := p.Open(context.Background(), b.Config)
			if !errors.Is(err, provider.ErrMissing) || thole.HintOf(err) == "" {
				b.Errorf("open: %v (hint %q)", err, thole.HintOf(err))
			}
		}),
		alone("CLI of an unknown newer version", func(b *Bench) {
			p := b.disguise("99.9.9")
			info := p.Probe(context.Background())
			if !info.Available || info.Version != "99.9.9" || info.Version == info.Pinned {
				b.Errorf("info %+v", info)
			}
			if info.Problem == "" {
				b.Error("a version that was not tested is not mentioned")
			}
			// What it can do is probed, not guessed: it still works.
			b.Provider = p
			b.outcome(b.Play(b.Open(), "sim: say still works"), thole.OutcomeCompleted)
		}),
		alone("CLI that dies at once", func(b *Bench) {
			for _, first := range []string{"", "exec 0<&-\nsleep 0.2\n"} { // deaf a moment before it dies
				p := b.script("#!/bin/sh\n" + first + "echo 'the license of " + b.secret() + " has expired' >&2\nexit 3\n")
				_, err := p.Open(context.Background(), b.Config)
				if err == nil || !strings.Contains(err.Error(), "has expired") {
					b.Errorf("no diagnosis: %v", err)
				}
			}
		}),
		alone("CLI that never gets ready", func(b *Bench) {
			p := b.script("#!/bin/sh\necho 'waiting for the moon' >&2\nexec sleep 300\n")
			ctx, cancel := context.WithTimeout(context.Background(), longStart)
			defer cancel()
			_, err := p.Open(ctx, b.Config)
			if err == nil || !strings.Contains(err.Error(), "waiting for the moon") {
				b.Errorf("no diagnosis: %v", err)
			}
		}),
		alone("probe has no side effect", func(b *Bench) {
			before := tree(b, filepath.Dir(b.Config.Data))
			b.Provider.Probe(context.Background())
			if after := tree(b, filepath.Dir(b.Config.Data)); after != before {
				b.Errorf("probe changed files:\n%s\n%s", before, after)
			}
		}),
		alone("credentials stay outside what is synced", func(b *Bench) {
			canary := b.secret()
			if b.Harness.Login != nil {
				name, data := b.Harness.Login(canary)
				if err := (provider.Grant{Files: map[string][]byte{name: data}}).Place(b.Config.Auth); err != nil {
					b.Fatal(err)
				}
			}
			s := b.Open(func(c *provider.SessionConfig) {
				c.Env = maps.Clone(c.Env)
				c.Env["THOLE_CANARY_API_KEY"] = canary
			})
			r := b.Play(s, "sim: run true ;; say fine")
			b.outcome(r, thole.OutcomeCompleted)
			other := b.Open() // at the same time, without the key
			r = append(r, b.Play(other, "sim: run env ;; say %tool%")...)
			_ = other.Close()
			_ = s.Close()
			if all, err := json.Marshal(r); err != nil || strings.Contains(string(all), canary) {
				b.Error("the canary is in an event")
			}
			for _, dir := range []string{b.Config.Data, b.Config.Dir} {
				_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
					if err == nil && d.Type().IsRegular() {
						if data, _ := os.ReadFile(path); strings.Contains(string(data), canary) {
							b.Errorf("the canary is in %s", path)
						}
					}
					return nil
				})
			}
		}),
	}
}

func (b *Bench) secret() string { return fmt.Sprintf("canary-%s", b.Config.Thread) }

// kill ends the CLI as the kernel's OOM killer would.
func (b *Bench) kill(s provider.Session) {
	b.Helper()
	p, ok := s.(processOf)
	if !ok {
		_ = s.Stop(context.Background())
		return
	}
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		b.Fatalf("kill the CLI: %v", err)
	}
}

// script makes the provider on a stand-in for the CLI.
func (b *Bench) script(text string) provider.Provider {
	b.Helper()
	if b.Harness.At == nil {
		b.Skip("no CLI behind this provider")
	}
	path := filepath.Join(b.TempDir(), filepath.Base(b.Info.Binary))
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		b.Fatal(err)
	}
	return b.Harness.At(b, path)
}

// disguise is the real CLI that claims another version.
func (b *Bench) disguise(version string) provider.Provider {
	b.Helper()
	if b.Harness.VersionText == nil {
		b.Skip("no CLI behind this provider")
	}
	return b.script("#!/bin/sh\ncase \"$1\" in --version|-v|-V|version) echo '" + b.Harness.VersionText(version) + "'; exit 0;; esac\nexec '" + b.Info.Binary + "' \"$@\"\n")
}

// tree lists the files below dir with their sizes.
func tree(b *Bench, dir string) string {
	var out strings.Builder
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil {
			if i, err := d.Info(); err == nil {
				fmt.Fprintf(&out, "%s %d %d\n", path, i.Size(), i.ModTime().UnixNano())
			}
		}
		return nil
	})
	return out.String()
}

// awaitModel waits for a model request with words of the prompt.
func (b *Bench) awaitModel(words string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), rowLimit)
	defer cancel()
	if _, err := b.Sim.Await(ctx, func(r modelsim.Request) bool {
		return r.Kind == modelsim.KindScript && strings.Contains(string(r.Body), words)
	}); err != nil {
		b.Fatal(err)
	}
}
