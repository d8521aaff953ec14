package appserver

import (
	"context"
	"path/filepath"
	"sort"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/protocol/app"
)

// register fills the contract's table with processors. A method without one would
// be a hole in the contract, and New's test finds it.
func (s *Server) register() {
	s.methods = table()
	s.registerThreads()
	s.registerHistory()
	s.registerTurns()
	s.registerWishes()
	s.registerGoals()
	s.registerSections()
	s.registerQueue()
	s.registerCatalog()
	s.registerExtension()
	s.registerWorkspace()
	on(s, "initialize", s.initialize)
	names := make([]string, 0, len(s.methods))
	for name := range s.methods {
		names = append(names, "`"+name+"`")
	}
	sort.Strings(names)
	s.names = strings.Join(names, ", ")
}

// on sets the processor of a method.
func on[P any](s *Server, name string, run func(ctx context.Context, c *conn, p *P) (answer, error)) *method {
	m := s.methods[name]
	m.run = func(ctx context.Context, c *conn, params any) (answer, error) {
		p, _ := params.(*P)
		return run(ctx, c, p)
	}
	return m
}

// A request is serialized with what it is about: requests of one key run in arrival
// order, exclusive ones alone. A processor never waits inside its key for a client, an
// agent or an executor: what may take long goes into answer.rest, after the key is free.

// inThread serializes a method with its thread: exclusive for what changes it,
// shared for what reads it. The answer to an exclusive one precedes what the thread
// publishes because of it.
func inThread[P any](m *method, mode serial.Mode, id func(*P) string) *method {
	m.key = func(_ *conn, params any) (lane, serial.Mode) { return lane{laneThread, id(params.(*P))}, mode }
	return m
}

// inPath serializes a method with a file or directory, of all connections.
func inPath[P any](m *method, mode serial.Mode, path func(*P) string) *method {
	m.key = func(_ *conn, params any) (lane, serial.Mode) {
		return lane{lanePath, filepath.Clean(path(params.(*P)))}, mode
	}
	return m
}

// inProcess serializes a method with a process or a watch that the connection named:
// the ids of different connections have nothing to do with each other.
func inProcess[P any](m *method, mode serial.Mode, id func(*P) string) *method {
	m.key = func(c *conn, params any) (lane, serial.Mode) {
		return lane{laneProcess, uintString(c.id) + "/" + id(params.(*P))}, mode
	}
	return m
}

// inConfig serializes a method with the settings of the connection's user.
func inConfig(m *method, mode serial.Mode) *method {
	m.key = func(c *conn, _ any) (lane, serial.Mode) { return lane{laneConfig, string(c.actor.User)}, mode }
	return m
}

// inAccount serializes a method with the accounts of the connection's user.
func inAccount(m *method, mode serial.Mode) *method {
	m.key = func(c *conn, _ any) (lane, serial.Mode) { return lane{laneAccount, string(c.actor.User)}, mode }
	return m
}

func (s *Server) initialize(_ context.Context, c *conn, p *app.InitializeParams) (answer, error) {
	if c.peer() != nil {
		return answer{}, thole.Errorf(thole.CodeConflict, "Already initialized")
	}
	if strings.TrimSpace(p.ClientInfo.Name) == "" || !printable(p.ClientInfo.Name) {
		return answer{}, thole.Errorf(thole.CodeInvalid, "Invalid clientInfo.name: '%s'. Must be a valid HTTP header value.", p.ClientInfo.Name)
	}
	if err := tooOld(p.ClientInfo); err != nil {
		return answer{}, err
	}
	who := &peer{info: p.ClientInfo}
	if caps := p.Capabilities; caps != nil {
		who.experimental, who.optOut = caps.ExperimentalAPI, caps.OptOut
		_, who.extended = caps.Extensions[app.Extension]
	}
	out := app.InitializeResult{
		UserAgent: userAgent(p.ClientInfo), CodexHome: s.cfg.Home, PlatformFamily: "unix", PlatformOS: goos(),
	}
	if who.extended {
		out.Thole = &app.ServerInfo{Version: s.cfg.Version, Home: s.cfg.Home}
	}
	c.mu.Lock()
	c.client = who
	c.mu.Unlock()
	return answer{result: out, then: func() {
		if err := c.watch(); err != nil {
			c.lost(err)
		}
	}}, nil
}

// who is the actor with the client's name, for the audit trail.
func (c *conn) who() thole.Actor {
	a := c.actor
	if p := c.peer(); p != nil && a.Client == "" {
		a.Client = p.info.Name
	}
	return a
}
