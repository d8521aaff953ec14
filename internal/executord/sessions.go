package executord

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/unguarded"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// openTimeout bounds the start of a CLI.
const openTimeout = 60 * time.Second

// sessions keeps the warm provider session of each thread between turns. One
// executor serves one thread (or one turn), so there is seldom more than one.
type sessions struct {
	providers map[string]provider.Provider
	dirs      Dirs
	boxes     *boxes
	way       *way
	attended  func() bool // whether a terminal is open
	working   func() bool // whether the command of a job runs
	set       *settings
	environ   func() map[string]string // of a program

	mu   sync.Mutex // guards warm
	warm map[thole.ThreadID]warmSession
}

type warmSession struct {
	provider string
	settings wire.SessionSettings
	grant    provider.Grant
	session  provider.Session
	plan     bool     // it runs in the box of those who only plan
	full     bool     // settings of the project count
	box      *box.Box // nil without walls
}

// open returns the thread's warm session if it fits the request, otherwise it
// closes that one and opens another.
func (s *sessions) open(ctx context.Context, req wire.RunRequest) (warmSession, error) {
	var none warmSession
	req, err := s.reach(req)
	if err != nil {
		return none, err
	}
	p, ok := s.providers[req.Provider]
	if !ok && req.Provider == "" {
		return none, thole.Errorf(thole.CodeUnsupported, "there is no agent on this machine").WithHint("install an agent: thole provider list says which there are and how; thole up --demo needs none")
	}
	if !ok {
		return none, thole.Errorf(thole.CodeInvalid, "no provider %q in this executor", req.Provider).WithHint("thole provider list shows the providers there are")
	}
	plan := s.boxes != nil && does(req, thole.ProfilePlan)
	if plan {
		if err := s.boxes.still(s.attended(), s.working()); err != nil {
			return none, err
		}
	}
	s.mu.Lock()
	have, found := s.warm[req.Thread]
	delete(s.warm, req.Thread)
	s.mu.Unlock()
	full := s.boxes == nil || unguarded.Build || does(req, thole.ProfileFull)
	if found && have.fits(req) && have.plan == plan && have.full == full && !have.gone() {
		return have, nil
	}
	if found {
		have.session.Close()
	}
	auth := filepath.Join(s.dirs.Auth, req.Provider)
	if err := req.Grant.Place(auth); err != nil {
		return none, err
	}
	data := filepath.Join(s.dirs.Data, req.Provider)
	if err := claim(s.dirs.Data, req.Provider); err != nil {
		return none, err
	}
	if s.boxes == nil || unguarded.Build {
		err = placeConfig(s.dirs, req.Provider, req.Grant)
	} else {
		var project projectTexts
		if !full {
			project = projectOf(s.dirs.Workspace, s.dirs.work())
		}
		err = s.set.lay(req.Provider, req.Grant.Config, project)
	}
	if err != nil {
		return none, err
	}
	in, err := s.boxes.get(plan, req.Grant, req.Provider)
	if err != nil {
		return none, err
	}
	env := s.environ()
	maps.Copy(env, req.Grant.Env)
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, thole.Errorf(thole.CodeUnavailable, "%s was not ready within %s", req.Provider, openTimeout))
	defer cancel()
	session, err := p.Open(ctx, provider.SessionConfig{
		Thread: req.Thread, Dir: s.dirs.work(), Data: data, Auth: auth, Env: env, Box: in, NoProject: !full,
		Resume: req.Session.Resume, Fork: req.Session.Fork, Tools: req.Session.Tools, Settings: req.Session.Settings,
	})
	return warmSession{provider: req.Provider, settings: req.Session, grant: req.Grant, session: session, plan: plan, full: full, box: in}, err
}

// reach fills in where the gateway is for the agent of a request that goes through it.
func (s *sessions) reach(req wire.RunRequest) (wire.RunRequest, error) {
	if !req.Grant.Led() {
		return req, nil
	}
	place, err := s.way.place(s.boxes != nil)
	req.Grant = req.Grant.At(place)
	return req, err
}

// does reports whether a turn has a profile: plan, in which it may change nothing, or
// full, in which nothing that settings of a project permit is more.
func does(req wire.RunRequest, p thole.Profile) bool {
	return provider.Neutral(req.Provider, cmp.Or(req.Turn.Profile, req.Session.Profile)) == p
}

// gone reports whether the session's box has ended, and its CLI with it.
func (w warmSession) gone() bool {
	if w.box == nil {
		return false
	}
	select {
	case <-w.box.Done():
		return true
	default:
		return false
	}
}

// claim makes a CLI's directory in that of all, whatever an agent put in its place:
// what it keeps and the settings that we put there must not go where a link leads.
func claim(data, name string) error {
	root, err := beneath.Trusted(data)
	if err != nil {
		return err
	}
	defer root.Close()
	_, err = root.Claim(name, 0o700)
	return err
}

// environ is what every program in the executor finds, without any credentials.
func (d Dirs) environ() map[string]string {
	env := map[string]string{"HOME": d.Home, "PATH": os.Getenv("PATH"), "TERM": "dumb", "LANG": "C.UTF-8", "TMPDIR": d.Tmp}
	if mark := os.Getenv(wire.Mark); mark != "" {
		env[wire.Mark] = mark // whatever is started is found by it
	}
	return env
}

// fits reports whether a warm session can run the request. Model, effort and
// profile travel with each turn, so only what is fixed at start-up counts. A login that
// was renewed since is: CLIs read it when they start.
func (w warmSession) fits(req wire.RunRequest) bool {
	return w.provider == req.Provider && !req.Session.Fork && !req.Session.Fresh &&
		(req.Session.Resume == "" || req.Session.Resume == w.session.NativeID()) &&
		req.Session.Instructions == w.settings.Instructions && maps.Equal(req.Session.Options, w.settings.Options) &&
		req.Turn.Reply == nil && w.grant.Equal(req.Grant)
}

// finished keeps the session warm unless its turn could not begin.
func (s *sessions) finished(req wire.RunRequest, w warmSession, err error) {
	if err != nil {
		w.session.Close()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.provider, w.settings = req.Provider, req.Session
	s.warm[req.Thread] = w
}

func (s *sessions) closeAll() {
	s.mu.Lock()
	warm := s.warm
	s.warm = map[thole.ThreadID]warmSession{}
	s.mu.Unlock()
	for _, w := range warm {
		w.session.Close()
	}
}

// placeConfig writes settings that are not there yet. Those that name the gateway are
// written each time: it has another place after each start.
func placeConfig(dirs Dirs, providerName string, g provider.Grant) error {
	place := func(top, below string, files map[string][]byte) error {
		if len(files) == 0 {
			return nil
		}
		above, err := os.OpenRoot(top)
		if err != nil {
			return err
		}
		defer above.Close()
		root, err := above.OpenRoot(below) // a link in its place leads nowhere
		if err != nil {
			return err
		}
		defer root.Close()
		for name, body := range files {
			if _, err := root.Lstat(name); err == nil && !g.Gateway {
				continue
			}
			if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				return thole.Errorf(thole.CodeInvalid, "place %s: %w", name, err)
			}
			if err := root.WriteFile(name, body, modeOf(body)); err != nil {
				return thole.Errorf(thole.CodeInvalid, "place %s: %w", name, err)
			}
		}
		return nil
	}
	data, home := map[string][]byte{}, map[string][]byte{}
	for name, body := range g.Config {
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			home[rest] = body
		} else {
			data[name] = body
		}
	}
	if err := place(dirs.Data, providerName, data); err != nil {
		return err
	}
	return place(dirs.Home, ".", home)
}
