package cli

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/version"
)

// deviceLogin lets a person confirm on the server's page that this program may act for them.
func (e *Env) deviceLogin(ctx context.Context, at string, scope session.Scope) error {
	base, err := serverURL(at)
	if err != nil {
		return err
	}
	all, err := readLogins()
	if err != nil {
		return err
	}
	token, hash := session.DeviceToken()
	s := &remoteServer{URL: base}
	host, _ := os.Hostname()
	in := map[string]any{"name": "thole " + version.Version + " on " + cmp.Or(host, "a machine without a name"), "token_sha256": hash, "scope": cmp.Or(scope, session.ScopeAct)}
	var out struct {
		Code      string `json:"user_code"`
		Page      string `json:"verification_uri_complete"`
		ExpiresIn int    `json:"expires_in"`
		Interval  int    `json:"interval"`
	}
	if err := s.send(ctx, http.MethodPost, "/auth/device", in, &out); err != nil {
		return err
	}
	putf(e.Err, "Open %s%s\nand let the program in that shows the code %s\n", base, out.Page, out.Code)
	if err := s.confirmed(ctx, in, time.Duration(max(1, out.Interval))*time.Second, time.Duration(out.ExpiresIn)*time.Second); err != nil {
		return err
	}
	s.Token = token
	var who struct {
		ID   string `json:"id"`
		User struct {
			Login string `json:"login"`
		} `json:"user"`
	}
	if err := s.send(ctx, http.MethodGet, "/auth/session", nil, &who); err != nil {
		return err
	}
	s.ID, s.Login = who.ID, who.User.Login
	all.Servers[base], all.Default = s, base
	if err := all.write(); err != nil {
		return err
	}
	return e.print(map[string]string{"server": base, "login": s.Login, "token_id": s.ID}, func(w io.Writer) {
		putf(w, "logged in to %s as %s\nCommands go there now; --server local asks the home of this machine, thole logout ends it.\n", base, s.Login)
	})
}

// confirmed waits until a person has decided.
func (s *remoteServer) confirmed(ctx context.Context, in map[string]any, every, life time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for end := time.Now().Add(life); time.Now().Before(end); {
		var now struct {
			State session.DeviceState `json:"state"`
		}
		if err := s.send(ctx, http.MethodPost, "/auth/device/state", map[string]any{"name": in["name"], "token_sha256": in["token_sha256"]}, &now); err != nil {
			return err
		}
		switch now.State {
		case session.DeviceConfirmed:
			return nil
		case session.DeviceGone:
			return thole.Errorf(thole.CodeForbidden, "the login was refused, or nobody confirmed it in time").WithHint("begin again with thole login --server %s", s.URL)
		case session.DeviceWaits:
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return thole.Errorf(thole.CodeForbidden, "nobody confirmed the login in time").WithHint("begin again with thole login --server %s", s.URL)
}

func newLogout(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "logout", Short: "End the login to a team server, there and here", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := readLogins()
			if err != nil {
				return err
			}
			at := cmp.Or(env.Server, os.Getenv("THOLE_SERVER"), all.Default)
			if at == "" {
				return thole.Errorf(thole.CodeNotFound, "not logged in to a team server")
			}
			if at, err = serverURL(at); err != nil {
				return err
			}
			s := all.Servers[at]
			if s == nil {
				return thole.Errorf(thole.CodeNotFound, "not logged in to %s", at)
			}
			// Without the server's word the token may work on: it stays here, so that this can be repeated.
			if err := s.send(cmd.Context(), http.MethodPost, "/auth/logout", struct{}{}, nil); err != nil && thole.CodeOf(err) != thole.CodeUnauthorized {
				return err
			}
			delete(all.Servers, at)
			if all.Default == at {
				all.Default = ""
			}
			if err := all.write(); err != nil {
				return err
			}
			return env.print(struct{}{}, func(w io.Writer) { putln(w, "logged out of "+at) })
		},
	}
}
