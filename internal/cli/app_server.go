package cli

import (
	"context"
	"errors"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/transport"
	"github.com/tholehq/thole/internal/transport/stdio"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/internal/version"
)

func newAppServer(env *Env) *cobra.Command {
	var (
		listen  string
		asStdio bool
		auth    func() (*transport.Auth, error)
		ignored []string
	)
	cmd := &cobra.Command{
		Use:   "app-server",
		Short: "Serve threads to clients of the Codex app-server protocol",
		Long: "Serves the home's threads to editors, SDKs and terminals that speak the Codex app-server protocol.\n" +
			"The process that owns the home does the work and is started if there is none; this command carries\n" +
			"messages to it. A ws:// listener prints the bound address as its first line and wants a token unless\n" +
			"--ws-auth none is said.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asStdio {
				listen = "stdio://"
			}
			addr, err := transport.ParseListen(listen)
			if err != nil {
				return err
			}
			a, err := auth()
			if err != nil {
				return err
			}
			if len(ignored) > 0 {
				putln(env.Err, "thole: -c is for codex's own configuration and was ignored; choose models and permissions per thread")
			}
			b, err := env.bridge(cmd.Context())
			if err != nil {
				return err
			}
			switch addr.Scheme {
			case transport.Stdio:
				if err := a.Permit(addr); err != nil {
					return err
				}
				b.ended = func(why string) { putln(env.Err, "thole: the connection was ended: "+why) }
				return b.carry(cmd.Context(), env.stdio())
			case transport.Off:
				return nil
			case transport.WS:
				b.remote = !a.Required() || !addr.TCP.Addr().Unmap().IsLoopback()
			case transport.Unix:
				if addr.Path == "" && b.server != nil {
					return onlyOnServer("the home's own socket", "name a path: --listen unix://PATH")
				}
				if addr.Path == "" {
					putln(env.Out, "unix://"+daemon.Socket(b.home))
					<-cmd.Context().Done()
					return nil
				}
			}
			l, err := transport.Listen(addr, a)
			if err != nil {
				return err
			}
			putln(env.Out, boundURL(addr, l.Addr().String()))
			return ws.NewServer(ws.Options{Auth: a, IgnoreBinary: true, PingEvery: 30 * time.Second},
				func(ctx context.Context, s jsonrpc.Stream) { _ = b.carry(ctx, s) }).Serve(cmd.Context(), l)
		},
	}
	auth = wsAuth(cmd)
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "stdio://", "stdio://, unix://PATH, unix:// (the home's own socket) or ws://IP:PORT")
	f.BoolVar(&asStdio, "stdio", false, "the same as --listen stdio://")
	f.StringArrayVarP(&ignored, "config", "c", nil, "accepted for clients made for codex, and ignored")
	_ = f.MarkHidden("config")
	return cmd
}

// bridge carries messages between clients and the owner of a home. It looks into
// none of them: the owner is the only server.
type bridge struct {
	home   string
	server *remoteServer // in place of the home's owner; nil: none
	// remote says that clients may be on other machines: then the owner lets them name no
	// directory of this one.
	remote bool
	// ended is called with the owner's reason, where a client's transport has no place
	// for it; nil elsewhere.
	ended func(why string)
}

// bridge makes sure that the home has an owner.
func (e *Env) bridge(ctx context.Context) (*bridge, error) {
	if s, err := e.server(); err != nil || s != nil {
		return &bridge{server: s}, err
	}
	home, err := e.home()
	if err != nil {
		return nil, err
	}
	b := &bridge{home: home}
	return b, b.wake(ctx)
}

func (b *bridge) wake(ctx context.Context) error {
	return (&daemonclient.Client{Home: b.home}).Call(ctx, wire.Hello, wire.HelloParams{Version: version.Version}, nil)
}

// dial connects to the owner, starting it again if it went away meanwhile.
func (b *bridge) dial(ctx context.Context) (jsonrpc.Stream, error) {
	if b.server != nil {
		return ws.Dial(ctx, b.server.contract(), ws.DialOptions{Token: b.server.Token})
	}
	addr, o := "unix://"+daemon.Socket(b.home), ws.DialOptions{}
	if b.remote {
		o.Path = daemon.ListenerPath
	}
	s, err := ws.Dial(ctx, addr, o)
	if err == nil {
		return s, nil
	}
	if err := b.wake(ctx); err != nil {
		return nil, err
	}
	return ws.Dial(ctx, addr, o)
}

// carry joins a client to the owner until one of them leaves.
func (b *bridge) carry(ctx context.Context, client jsonrpc.Stream) error {
	owner, err := b.dial(ctx)
	if err != nil {
		_ = client.Close("the owner of the home cannot be reached")
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		_ = owner.Close("the bridge was stopped")
		_ = client.Close("the bridge was stopped")
	})
	defer stop()
	fromOwner := make(chan error, 1)
	go func() {
		err := pipe(owner, client)
		why := "the owner of the home ended the connection"
		if bye, ok := errors.AsType[*ws.Goodbye](err); ok {
			if why = bye.Reason; b.ended != nil {
				b.ended(why)
			}
		}
		_ = client.Close(why)
		fromOwner <- err
	}()
	fromClient := make(chan error, 1)
	go func() {
		fromClient <- pipe(client, owner)
		_ = owner.Close("the client left")
	}()
	// Nothing wakes a reader of stdin: it is not waited for.
	var in, left error
	select {
	case in = <-fromClient:
		left = <-fromOwner
	case left = <-fromOwner:
		_ = owner.Close("the client left")
		select {
		case in = <-fromClient: // first
		default:
		}
	}
	switch {
	case ctx.Err() != nil, errors.Is(in, io.EOF), errors.Is(left, syscall.EPIPE): // the last: the client was gone
		return nil
	case left != nil && !errors.Is(left, io.EOF):
		return thole.Errorf(thole.CodeUnavailable, "the owner of the home went away: %w", left).WithHint("see %s/daemon.log", b.home)
	}
	return nil
}

// stdio is the one connection of a server on a pipe. That its client went away must
// reach it as the error of a write: the signal would end it before it has tidied up.
func (e *Env) stdio() jsonrpc.Stream {
	signal.Ignore(syscall.SIGPIPE)
	return stdio.New(e.In, struct{ io.Writer }{e.rawOut}, 0)
}

// pipe copies messages until one end fails.
func pipe(from, to jsonrpc.Stream) error {
	for {
		m, err := from.Read(context.Background())
		if err != nil {
			return err
		}
		if err := to.Write(context.Background(), m); err != nil {
			return err
		}
	}
}
