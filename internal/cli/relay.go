package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/relay"
	"github.com/tholehq/thole/internal/relay/registry"
	"github.com/tholehq/thole/internal/transport"
)

func newRelay(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "relay", Short: "Connect exec-servers and their clients that cannot reach each other"}
	cmd.AddCommand(newRelayServe(env))
	return cmd
}

func newRelayServe(env *Env) *cobra.Command {
	var listen, tokens, public, cert, key string
	cmd := &cobra.Command{
		Use:   "serve --tokens FILE",
		Short: "Serve a registry and rendezvous for exec-server --remote",
		Long: "Exec-servers and clients connect to it from wherever they are, prove themselves with a token and talk through it.\n" +
			"It cannot read or change what they say, but it vouches for their keys: pin them (--executor-key, --allow-harness)\n" +
			"where it is not trusted. The first line on standard output is its address.\n\n" +
			"A line of the file is TOKEN, or OWNER ROLE TOKEN with a role of executor, harness or both. Owners do not see\n" +
			"each other's environments. A file that is missing is made, with one token. Tokens and certificate are read again\n" +
			"when their files change.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			addr, err := transport.ParseListen(listen)
			switch {
			case err != nil:
				return err
			case addr.Scheme != transport.WS:
				return thole.Errorf(thole.CodeInvalid, "a relay listens on ws://IP:PORT")
			case (cert == "") != (key == ""):
				return thole.Errorf(thole.CodeInvalid, "--tls-cert and --tls-key need each other")
			}
			encrypted, err := checkPublic(public)
			switch {
			case err != nil:
				return err
			case cert == "" && !encrypted && !addr.TCP.Addr().Unmap().IsLoopback():
				return thole.Errorf(thole.CodeForbidden, "refusing to take tokens unencrypted on %s", addr).
					WithHint("use --tls-cert and --tls-key, or --public-url https://… with a proxy before it that ends TLS")
			}
			known, made, err := registry.OpenTokens(tokens)
			if err != nil {
				return err
			}
			if made {
				putf(env.Err, "made %s with one token; copy it to the machines that may use this relay\n", tokens)
			}
			log := slog.New(slog.NewTextHandler(env.Err, nil))
			var conf *tls.Config
			if cert != "" {
				pair, err := registry.ReloadCertificate(cert, key)
				if err != nil {
					return err
				}
				conf = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
					current, err := pair.Get()
					if err != nil {
						log.Warn("the certificate could not be read again; that of before is used", "err", err)
					}
					return current, nil
				}}
			}
			l, err := net.Listen("tcp", addr.TCP.String())
			if err != nil {
				return thole.Errorf(thole.CodeUnavailable, "listen on %s: %w", addr, err).WithHint("the port may be in use; port 0 lets the system choose")
			}
			scheme := "http://"
			if conf != nil {
				l, scheme = tls.NewListener(l, conf), "https://"
			}
			putln(env.Out, scheme+l.Addr().String())
			return serveRelay(cmd.Context(), l, registry.New(registry.Config{TokensFile: known, URL: public, Log: log}))
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "ws://127.0.0.1:0", "ws://IP:PORT")
	f.StringVar(&tokens, "tokens", "", "file with the tokens of who may use it; made when it is missing")
	f.StringVar(&public, "public-url", "", "address at which others reach it, when that is not what they ask for")
	f.StringVar(&cert, "tls-cert", "", "file with the certificate chain, to serve TLS")
	f.StringVar(&key, "tls-key", "", "file with the certificate's key")
	_ = cmd.MarkFlagRequired("tokens")
	return cmd
}

// checkPublic checks the address that peers are sent to, which may be empty, and reports
// whether it encrypts. Peers send no token over http but to their own machine.
func checkPublic(address string) (encrypted bool, err error) {
	if address == "" {
		return false, nil
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return false, thole.Errorf(thole.CodeInvalid, "invalid --public-url %q: it is https://HOST[:PORT]", address)
	case u.Scheme == "http" && !relay.Loopback(u.Hostname()):
		return false, thole.Errorf(thole.CodeForbidden, "--public-url %s: tokens would travel unencrypted", address).
			WithHint("use https://; http:// is for loopback")
	}
	return u.Scheme == "https", nil
}

func serveRelay(ctx context.Context, l net.Listener, r *registry.Registry) error {
	srv := &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	err := srv.Serve(l)
	r.Close()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return thole.Errorf(thole.CodeUnavailable, "serve %s: %w", l.Addr(), err)
}
