package system

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/platform/peer"
	"github.com/tholehq/thole/internal/roster"
	"github.com/tholehq/thole/internal/store"
)

// peers is how this server and the others of its store ask each other.
type peers struct {
	*peer.Peers
	rows interface {
		ServerOf(ctx context.Context, id thole.ThreadID) (server string, live bool, err error)
	}
	ln   net.Listener
	srv  *http.Server
	done chan struct{}
	log  *slog.Logger
	// answers are the methods that this server answers for others; see wherever.
	answers map[string]daemon.Method
}

// openPeers binds the address for other servers; nil where there is none.
func (s *System) openPeers(ctx context.Context, cfg *config.Config, m *roster.Member, rows *store.Executors, log *slog.Logger) (*peers, error) {
	if m == nil {
		return nil, nil
	}
	all, err := peer.New(m.Self.ID, m.Store.List, log)
	if err != nil {
		return nil, err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Server.Listen)
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "listen for other servers on %s: %w", cfg.Server.Listen, err).WithHint("choose another server.listen")
	}
	s.closes(func() error { _ = ln.Close(); all.Close(); return nil }) // again, where it was served
	m.Self.Peer, m.Self.Certificate = cfg.Server.Address, all.Sum()
	if m.Self.Peer == "" {
		if m.Self.Peer, err = reachedAt(ctx, ln.Addr(), cfg.Store); err != nil {
			return nil, err
		}
	}
	return &peers{Peers: all, rows: rows, ln: ln, done: make(chan struct{}), log: log}, nil
}

// homePath is where other servers find what the socket of this home serves.
const homePath = "/home"

// serve makes the part that answers other servers: as people are answered, and as the home's
// socket answers, and with connections to the executors of this machine.
func (p *peers) serve(page *web, home http.Handler, driver executor.Driver) *part {
	mux := http.NewServeMux()
	mux.Handle(homePath+"/", http.StripPrefix(homePath, home))
	p.executors(mux, driver)
	mux.Handle("POST "+methodsPath, jsonhttp.Handle(maxCall, p.answer))
	if page != nil {
		mux.Handle("/", page.api.Peer())
	}
	p.srv = p.Server(mux)
	return &part{
		start: func(context.Context) error {
			go func() {
				defer close(p.done)
				if err := p.srv.Serve(p.Listener(p.ln)); !errors.Is(err, http.ErrServerClosed) {
					p.log.Error("other servers are answered no longer", "err", err)
				}
			}()
			return nil
		},
		stop: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if p.srv.Shutdown(ctx) != nil {
				_ = p.srv.Close()
			}
			<-p.done
			return nil
		},
	}
}

// elsewhere is httpapi.Elsewhere. An executor whose server cannot be asked is not missing: only
// what is over is answered from here.
func (p *peers) elsewhere(ctx context.Context, id thole.ThreadID) (func(http.ResponseWriter, *http.Request), error) {
	if p == nil {
		return nil, nil
	}
	to, err := p.serverOf(ctx, id)
	if to == nil || err != nil {
		return nil, err
	}
	return func(w http.ResponseWriter, r *http.Request) { p.Pass(w, r, *to) }, nil
}

// serverOf is the server that has the executor or the files of a thread, nil for this one, or for
// what is over on one that is gone.
func (p *peers) serverOf(ctx context.Context, id thole.ThreadID) (*roster.Server, error) {
	server, live, err := p.rows.ServerOf(ctx, id)
	if err != nil || server == "" || p.Self(server) {
		return nil, err
	}
	to, err := p.Find(ctx, server)
	if to == nil && err == nil && live {
		err = awayError(server)
	}
	return to, err
}

// awayError says that an executor cannot be reached, which does not mean that it has ended.
func awayError(server string) error {
	return thole.Errorf(thole.CodeUnavailable, "the executor of this thread is on server %s, which does not answer", server).
		WithHint("another server goes on with its last saved files when the executor has certainly ended; the next message begins that")
}

// orElsewhere passes a request of the home's socket about a thread on to the server that has its
// executor.
func (p *peers) orElsewhere(here http.HandlerFunc) http.HandlerFunc {
	if p == nil {
		return here
	}
	return func(w http.ResponseWriter, r *http.Request) {
		pass, err := p.elsewhere(r.Context(), thole.ThreadID(r.PathValue("thread")))
		switch {
		case err != nil:
			jsonhttp.Error(w, err)
		case pass == nil || r.Header.Get(passedHeader) != "":
			here(w, r)
		default:
			out := r.Clone(r.Context())
			out.URL.Path = homePath + r.URL.Path
			out.Header.Set(passedHeader, "1")
			pass(w, out)
		}
	}
}

// passedHeader keeps a request from being passed on again.
const passedHeader = "Thole-Passed"
