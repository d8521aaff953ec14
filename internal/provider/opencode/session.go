package opencode

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/base"
)

// session is one conversation with a server of its own. A server that died is
// replaced at the next turn.
type session struct {
	base.Session[*server]
	opts Config

	// Owned by Open, then by one turn at a time.
	agents  map[string]bool
	windows map[string]int64 // context windows by provider/model, nil before the server was asked
	allowed allowances
	lastID  int64
}

func newSession(opts Config, binary string, cfg provider.SessionConfig) *session {
	s := &session{opts: opts}
	s.Init(base.Options{Name: name, Ready: opts.Start, StopGrace: opts.StopGrace, CloseGrace: time.Second, CutGrace: time.Second, Stall: opts.Stall,
		Login: filepath.Join(dataHome(cfg), name, "auth.json"), Linked: true}, binary, cfg, s)
	return s
}

// open starts the server and finds, forks or makes the conversation.
func (s *session) open(ctx context.Context) error {
	srv, err := s.Alive(ctx)
	if err != nil {
		return err
	}
	if _, err := stanceOf(s.Cfg.Profile, s.agents); err != nil {
		return err
	}
	var i info
	switch {
	case s.Cfg.Resume == "":
		err = srv.call(ctx, http.MethodPost, "/session", map[string]any{}, &i)
	case s.Cfg.Fork:
		if err = s.lookup(ctx, srv, s.Cfg.Resume); err == nil {
			err = srv.call(ctx, http.MethodPost, "/session/"+s.Cfg.Resume+"/fork", map[string]any{}, &i)
		}
	default:
		err = s.lookup(ctx, srv, s.Cfg.Resume)
		i.ID = s.Cfg.Resume
	}
	if err != nil {
		return err
	}
	s.SetNative(i.ID)
	return nil
}

// lookup checks that a session exists for this directory: on one of another
// directory a turn would hang.
func (s *session) lookup(ctx context.Context, srv *server, id string) error {
	var i info
	var err error
	lost := !isSessionID(id)
	if !lost {
		err = srv.call(ctx, http.MethodGet, "/session/"+id, nil, &i)
		lost = isStatus(err, http.StatusNotFound) || err == nil && !sameDir(i.Directory, s.Cfg.Dir)
	}
	if lost {
		return thole.Errorf(thole.CodeNotFound, "%w: opencode has no session %s for this directory", provider.ErrSessionLost, id).
			WithHint("sessions are bound to the workspace's path and to their data directory")
	}
	return err
}

// isSessionID reports whether the server could have made the id. It fails on any
// other without saying why, and the id becomes part of a path.
func isSessionID(id string) bool {
	rest, ok := strings.CutPrefix(id, "ses_")
	return ok && rest != "" && strings.Trim(rest, letters) == ""
}

func sameDir(a, b string) bool {
	if a == b {
		return true
	}
	ra, err1 := filepath.EvalSymlinks(a)
	rb, err2 := filepath.EvalSymlinks(b)
	return errors.Join(err1, err2) == nil && ra == rb
}

// Start brings a server and its event feed, and checks that it has the
// conversation.
func (s *session) Start(ctx context.Context) (*server, error) {
	srv, err := s.startServer(ctx)
	if err != nil {
		return nil, err
	}
	if err = s.greet(ctx, srv); err == nil {
		srv.feed, err = startFeed(ctx, srv)
	}
	if id := s.NativeID(); err == nil && id != "" {
		err = s.lookup(ctx, srv, id)
	}
	if err != nil {
		srv.Close(0)
		return nil, err
	}
	return srv, nil
}

// greet asks for the agents, which also makes the server read its configuration:
// a broken one shows here.
func (s *session) greet(ctx context.Context, srv *server) error {
	var list []struct {
		Name string `json:"name"`
	}
	if err := srv.call(ctx, http.MethodGet, "/agent", nil, &list); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "opencode does not answer: %w; %s", err, srv.Diagnosis())
	}
	s.agents = map[string]bool{}
	for _, a := range list {
		s.agents[a.Name] = true
	}
	return nil
}

// windowTimeout bounds how long a turn's events wait for the answer.
const windowTimeout = 5 * time.Second

// windows asks how much the models hold. A server that does not say leaves them unknown.
func windows(srv *server) map[string]int64 {
	ctx, cancel := context.WithTimeout(context.Background(), windowTimeout)
	defer cancel()
	var told struct {
		Providers []struct {
			ID     string `json:"id"`
			Models map[string]struct {
				Limit struct {
					Context int64 `json:"context"`
				} `json:"limit"`
			} `json:"models"`
		} `json:"providers"`
	}
	out := map[string]int64{}
	if srv.call(ctx, http.MethodGet, "/config/providers", nil, &told) != nil {
		return out
	}
	for _, p := range told.Providers {
		for id, m := range p.Models {
			if m.Limit.Context > 0 {
				out[p.ID+"/"+id] = m.Limit.Context
			}
		}
	}
	return out
}

// parts makes the parts of a prompt.
func (s *session) parts(input []thole.Input) ([]any, error) {
	return provider.Blocks(s.Cfg.Dir, input, func(mime, data string) any {
		return map[string]any{"type": "file", "mime": mime, "filename": "image", "url": "data:" + mime + ";base64," + data}
	})
}
