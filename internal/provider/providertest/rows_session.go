package providertest

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/snapshot"
)

func sessionRows() []Row {
	return []Row{
		alone("resume in a new process and in a copied home", func(b *Bench) {
			s := b.Open()
			b.outcome(b.Play(s, "remember the word heliotrope\nsim: say ok"), thole.OutcomeCompleted)
			id := s.NativeID()
			if id == "" {
				b.Fatal("no native id after a turn")
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			again := b.Open(Resume(id))
			b.remembers(again, id, "heliotrope")
			_ = again.Close()
			moved := b.Config.Data + "-moved"
			if err := snapshot.Copy(context.Background(), b.Config.Data, moved, nil); err != nil {
				b.Fatal(err)
			}
			if err := os.RemoveAll(b.Config.Data); err != nil {
				b.Fatal(err)
			}
			b.Config.Data = moved
			b.configure(&b.Config)
			b.remembers(b.Open(Resume(id)), id, "heliotrope")
		}),
		alone("resume after a kill", func(b *Bench) {
			s := b.Open()
			b.outcome(b.Play(s, "remember the word heliotrope\nsim: say ok"), thole.OutcomeCompleted)
			t := b.Start(s, "sim: run "+orphan)
			pid := b.pid("pid")
			b.kill(s)
			if r := t.Wait(); r.Outcome() != thole.OutcomeFailed && r.Outcome() != thole.OutcomeInterrupted {
				b.Errorf("outcome %s", r.Outcome())
			}
			_ = s.Close()
			b.gone(pid)
			b.remembers(b.Open(Resume(s.NativeID())), s.NativeID(), "heliotrope")
		}),
		alone("resume of an unknown session", func(b *Bench) {
			_, err := b.TryOpen(Resume("00000000-0000-7000-8000-00000000dead"))
			if !errors.Is(err, provider.ErrSessionLost) {
				b.Errorf("open: %v", err)
			}
		}),
		alone("fork", func(b *Bench) {
			s := b.Open()
			b.outcome(b.Play(s, "remember the word heliotrope\nsim: say ok"), thole.OutcomeCompleted)
			id := s.NativeID()
			_ = s.Close()
			forked, err := b.TryOpen(Resume(id), func(c *provider.SessionConfig) { c.Fork = true })
			if b.degraded("fork", b.Info.Capabilities.Fork) {
				if !errors.Is(err, provider.ErrUnsupported) {
					b.Errorf("fork: %v", err)
				}
				return
			}
			if err != nil {
				b.Fatal(err)
			}
			b.remembers(forked, "", "heliotrope")
			if forked.NativeID() == id {
				b.Error("the fork has the original's id")
			}
			_ = forked.Close()
			again := b.Open(Resume(id))
			b.remembers(again, id, "heliotrope")
			if b.Sim != nil && strings.Count(b.lastRequest(), "what was the word") > 1 {
				b.Error("the original saw the fork's turn")
			}
		}),
		alone("four sessions at once", func(b *Bench) {
			var wg sync.WaitGroup
			for _, word := range []string{"north", "east", "south", "west"} {
				wg.Go(func() {
					cfg := b.Config
					cfg.Data, cfg.Env = filepath.Join(b.Config.Data, word), maps.Clone(cfg.Env)
					if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
						b.Error(err)
						return
					}
					b.configure(&cfg)
					s, err := b.TryOpen(func(c *provider.SessionConfig) { *c = cfg })
					if err != nil {
						b.Errorf("%s: %v", word, err)
						return
					}
					for range 2 {
						r := b.Start(s, "sim: slow 10ms 3 ;; think about "+word+" ;; say going "+word).Wait()
						if !strings.Contains(r.Text(), "going "+word) {
							b.Errorf("%s: text %q", word, r.Text())
						}
					}
				})
			}
			wg.Wait()
		}),
	}
}

// remembers asserts that a session has the word of an earlier turn.
func (b *Bench) remembers(s provider.Session, id, word string) {
	b.Helper()
	r := b.Play(s, "what was the word?\nsim: say I know %turns%")
	b.outcome(r, thole.OutcomeCompleted)
	if id != "" && s.NativeID() != id {
		b.Errorf("native id %q, want %q", s.NativeID(), id)
	}
	if b.Sim != nil && !strings.Contains(b.lastRequest(), word) {
		b.Errorf("the model was not given the history")
	}
}

// lastRequest is the newest model request's body.
func (b *Bench) lastRequest() string {
	b.Helper()
	turns := b.Sim.Turns()
	if len(turns) == 0 {
		b.Fatal("no model request")
	}
	return string(turns[len(turns)-1].Body)
}
