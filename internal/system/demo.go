package system

import (
	"context"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/doctor"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/claude"
	"github.com/tholehq/thole/internal/provider/codex"
	"github.com/tholehq/thole/internal/provider/opencode"
)

// demo is the scripted model in place of a real one, and the credentials that
// point every CLI at it.
type demo struct {
	sim  *modelsim.Sim
	url  string
	done chan struct{}
}

// startDemo listens where the home's scripted model was before, if it can: codex
// keeps the address in each thread's settings.
func startDemo(home string) (*demo, error) {
	note := filepath.Join(home, "demo-model")
	address := "127.0.0.1:0"
	if before, err := os.ReadFile(note); err == nil && strings.HasPrefix(string(before), "127.0.0.1:") {
		address = string(before)
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		ln, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err == nil {
		err = atomicfile.Write(note, []byte(ln.Addr().String()), 0o600)
	}
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "start the scripted model: %w", err)
	}
	d := &demo{sim: modelsim.New(modelsim.Options{Demo: true, Pace: 15 * time.Millisecond}), url: "http://" + ln.Addr().String(), done: make(chan struct{})}
	go func() {
		defer close(d.done)
		_ = d.sim.Serve(ln)
	}()
	return d, nil
}

func (d *demo) stop() error {
	err := d.sim.Close()
	<-d.done
	return err
}

// For implements provider.Credentials.
func (d *demo) For(_ context.Context, who provider.For) (provider.Grant, error) {
	return DemoGrant(who.Provider, d.url)
}

// DemoGrant lets a CLI run on the scripted model at url, without network or key.
func DemoGrant(name, url string) (provider.Grant, error) {
	switch name {
	case codex.Name:
		return codexDemo(url)
	case claude.Name:
		return provider.Grant{Env: environ(modelsim.ClaudeEnv(url))}, nil
	case opencode.Name:
		return provider.Grant{Env: environ(modelsim.OpencodeEnv(url))}, nil
	}
	return provider.Grant{}, nil
}

// codexDemo makes codex's settings as files. The model catalog is named by an
// absolute path, which is only known inside the executor: there the agents' data
// is always at the same place below the workspace, and codex resolves a relative
// name against its home.
func codexDemo(url string) (provider.Grant, error) {
	dir, err := os.MkdirTemp("", "thole-demo")
	if err != nil {
		return provider.Grant{}, thole.Errorf(thole.CodeUnavailable, "prepare an agent for the scripted model: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := modelsim.CodexConfig(dir, url); err != nil {
		return provider.Grant{}, err
	}
	g := provider.Grant{Config: map[string][]byte{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return provider.Grant{}, err
	}
	for _, e := range entries {
		body, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return provider.Grant{}, err
		}
		name := e.Name()
		if name != "config.toml" {
			name = codex.Laid + "/" + name
		}
		g.Config[name] = []byte(strings.ReplaceAll(string(body), dir+"/", codex.Laid+"/"))
	}
	return g, nil
}

func environ(list []string) map[string]string {
	env := map[string]string{}
	for _, v := range list {
		key, value, _ := strings.Cut(v, "=")
		env[key] = value
	}
	return env
}

// credentials are the user's own logins, or the scripted model's.
func (s *System) credentials(o Options) (provider.Credentials, error) {
	if !o.Demo {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "find the agents' logins: %w", err)
		}
		return provider.Login{Home: home, Getenv: os.Getenv, HandIn: o.Config.Providers.HandInLogins, Renewed: doctor.NoteLogins(o.Config.Home, o.Log)}, nil
	}
	if o.DemoModel != "" {
		u, err := url.Parse(o.DemoModel)
		if err != nil || u.Scheme != "http" || u.Host == "" {
			return nil, thole.Errorf(thole.CodeInvalid, "invalid URL of a scripted model %q", o.DemoModel).
				WithHint("start one with thole demo-model and pass the URL that it prints")
		}
		return &demo{url: strings.TrimSuffix(o.DemoModel, "/")}, nil
	}
	d, err := startDemo(o.Config.Home)
	if err != nil {
		return nil, err
	}
	s.closes(d.stop)
	return d, nil
}
