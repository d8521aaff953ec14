// Package doctor looks at a machine and says what thole finds there, what is
// missing and what helps. It changes nothing and starts nothing that stays.
package doctor

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/diskspace"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/testprovider"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
)

// Finding is what the doctor says about one part: fine, or what is wrong, what
// that disables and the command that helps.
type Finding struct {
	Part string `json:"part"`
	OK   bool   `json:"ok"`
	// Unknown: it could not be found out; nothing is known to be wrong.
	Unknown  bool   `json:"unknown,omitempty"`
	Found    string `json:"found,omitempty"`
	Problem  string `json:"problem,omitempty"`
	Disables string `json:"disables,omitempty"`
	Fix      string `json:"fix,omitempty"`
	// Needed: without it thole does not work at all.
	Needed bool `json:"needed,omitempty"`
}

// Config says what to look at.
type Config struct {
	*config.Config
	Agents []provider.Provider
	// Kept is what the vault has, nil where it was not asked.
	Kept Kept
	// Tried is what services said of the credentials, nil where they were not asked.
	Tried daemon.Checks
	// Objects tries the object store that is a service; nil: it is a directory.
	Objects func(context.Context) error
}

// Look looks at this machine.
func Look(ctx context.Context, cfg Config) []Finding {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	var out []Finding
	out = append(out, checkHome(cfg.Home), checkSocket(cfg.Home), checkStore(ctx, cfg.Config), checkPort(cfg.Home, cfg.HTTP.Listen))
	agents := checkAgents(ctx, cfg.Agents)
	userHome, _ := os.UserHomeDir()
	logins := provider.Login{Home: userHome, Getenv: os.Getenv, HandIn: cfg.Providers.HandInLogins}
	credentials := CheckCredentials(ctx, cfg.Config, logins, cfg.Kept)
	out = append(append(append(out, agents...), credentials...), Usable(agents, credentials))
	out = append(out, Tried(cfg.Tried)...)
	out = append(out, checkLogins(cfg.Home, logins)...)
	out = append(out, checkChannel(ctx, cfg.Config), checkDesktop(cfg.Config), checkIsolation(ctx, cfg.Executor))
	out = append(out, checkOwners(cfg.Executor)...)
	return append(out, checkEgress(cfg.Config, os.Getenv), checkPaths(cfg.Config), checkShell(ctx, cfg.Config), CheckVault(ctx, cfg.Config), CheckLimits(cfg.Executor), checkObjects(ctx, cfg), checkDocker(ctx))
}

func checkAgents(ctx context.Context, list []provider.Provider) []Finding {
	out := make([]Finding, 0, len(list))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, p := range list {
		if p.Name() == testprovider.Name {
			continue
		}
		wg.Go(func() {
			info := p.Probe(ctx)
			f := Finding{Part: "agent " + info.Name, OK: info.Available, Problem: info.Problem, Fix: info.Fix, Disables: "threads with provider " + info.Name}
			if info.Binary != "" {
				f.Found = strings.TrimSpace(info.Version + " " + info.Binary)
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, f)
		})
	}
	wg.Wait()
	slices.SortFunc(out, func(a, b Finding) int { return strings.Compare(a.Part, b.Part) })
	return out
}

func checkHome(home string) Finding {
	f := Finding{Part: "home", Found: home, Needed: true, Disables: "everything"}
	st, err := os.Lstat(home)
	switch {
	case os.IsNotExist(err):
		at := filepath.Dir(home)
		for ; at != filepath.Dir(at); at = filepath.Dir(at) {
			if _, err := os.Stat(at); err == nil {
				break
			}
		}
		if err := syscall.Access(at, 2 /* write */); err != nil {
			f.Problem, f.Fix = "it cannot be made in "+at+": "+err.Error(), "choose another directory with --home or THOLE_HOME"
			return f
		}
		f.OK, f.Found = true, home+" (made by the first command)"
	case err != nil:
		f.Problem, f.Fix = err.Error(), "choose another directory with --home or THOLE_HOME"
	case !st.IsDir():
		f.Problem, f.Fix = "it is not a directory", "choose another directory with --home or THOLE_HOME"
	case st.Mode().Perm()&0o077 != 0:
		f.Problem, f.Fix = fmt.Sprintf("its mode is %#o: others can look in", st.Mode().Perm()), "chmod 700 "+home
	default:
		probe, err := os.CreateTemp(home, ".doctor-*")
		if err != nil {
			f.Problem, f.Fix = "it cannot be written: "+err.Error(), "make it writable, or choose another with --home"
			return f
		}
		probe.Close()
		os.Remove(probe.Name())
		if f.Problem = diskspace.Problem(home); f.Problem != "" {
			f.Fix = "delete what is not needed; `thole executor list` shows what agents have, in " + filepath.Join(home, "x")
			return f
		}
		f.OK = true
	}
	return f
}

func checkSocket(home string) Finding {
	f := Finding{Part: "socket", Needed: true, Disables: "every command that talks to the daemon"}
	path := daemon.Socket(home)
	if len(path) > 107 {
		f.Problem, f.Fix = "its path is longer than the kernel allows: "+path, "choose a shorter --home"
		return f
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	f.OK = true
	f.Found = "nobody owns the home; commands start the daemon by themselves"
	if err == nil {
		conn.Close()
		f.Found = "answers at " + path
	}
	return f
}

func checkPort(home, listen string) Finding {
	f := Finding{Part: "http", Found: listen, Disables: "thole up"}
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		if pid := listener(home, listen); pid != 0 {
			f.OK, f.Found = true, fmt.Sprintf("%s, where the owner of the home (pid %d) listens", listen, pid)
			return f
		}
		f.Problem, f.Fix = err.Error(), "end the program that has it, or set http.listen to another port"
		return f
	}
	ln.Close()
	f.OK = true
	return f
}

// checkIsolation says how agents are kept apart from this machine. Without a box no
// turn runs, unless a person typed so.
func checkIsolation(ctx context.Context, cfg config.Executor) Finding {
	f := Finding{Part: "isolation", Needed: true, Disables: "turns: no agent runs without walls"}
	if note := Unwalled(cfg); note != "" {
		f.Needed = false // a person typed so
		f.Problem, f.Disables, f.Fix = note, "every wall between agents and this machine", "remove executor.isolation from the configuration"
		return f
	}
	if err := local.CheckPlatform(); err != nil {
		f.Problem, f.Fix = err.Error(), thole.HintOf(err)
		return f
	}
	path, err := local.FindBwrap(ctx, cfg.UIDBase)
	if err != nil {
		f.Found, f.Problem, f.Fix = path, err.Error(), thole.HintOf(err)
		return f
	}
	f.OK, f.Found = true, "box, "+path
	if os.Geteuid() == 0 {
		f.Found += fmt.Sprintf(", agents are users %d to %d", cfg.UIDBase, cfg.UIDBase+local.UIDs-1)
	}
	return f
}

// checkStore says whether the store can be used, where it is PostgreSQL.
func checkStore(ctx context.Context, cfg *config.Config) Finding {
	f := Finding{Part: "store", Needed: true, OK: true, Found: "SQLite in the home", Disables: "everything"}
	if !cfg.Store.Postgres() {
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, 2*lookTime)
	defer cancel()
	dsn, err := cfg.Store.DSN()
	var r *sqldb.Report
	if err == nil {
		r, err = store.CheckPostgres(ctx, dsn)
	}
	if err != nil {
		f.OK, f.Found, f.Problem, f.Fix = false, "", err.Error(), thole.HintOf(err)
		return f
	}
	f.Found = fmt.Sprintf("%s, schema %d", cfg.Store.URL, r.Schema)
	if r.Schema == 0 {
		f.Found = cfg.Store.URL + ", empty; the first start makes its tables"
	}
	return f
}

// lookTime bounds one look at a service.
const lookTime = 5 * time.Second

func checkObjects(ctx context.Context, cfg Config) Finding {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	at := filepath.Join(cfg.Home, "objects")
	f := Finding{Part: "objects", Found: "directory in the home", Disables: "sync and restore of workspaces; they wait", Fix: "make " + at + " a directory that can be written, or put it back"}
	var err error
	if cfg.Objects != nil {
		at := cfg.Config.Objects
		f.Found, f.Fix = "s3 "+at.Endpoint+"/"+at.Bucket, "start the S3 server, or correct objects.endpoint"
		err = cfg.Objects(ctx)
	} else if _, stat := os.Stat(filepath.Join(cfg.Home, "thole.db")); stat == nil { // a fresh home has none
		var st os.FileInfo
		if st, err = os.Stat(at); err == nil && !st.IsDir() {
			err = fmt.Errorf("%s is not a directory", at)
		}
		if err == nil {
			err = syscall.Access(at, 2 /* write */)
		}
	}
	if f.OK = err == nil; !f.OK {
		f.Problem = err.Error()
		if hint := thole.HintOf(err); hint != "" {
			f.Fix = hint
		}
	}
	return f
}

func checkDocker(ctx context.Context) Finding {
	f := Finding{Part: "docker", Disables: "container executors (they come later; local ones do not need it)"}
	path, err := exec.LookPath("docker")
	if err != nil {
		f.Problem, f.Fix = "not installed", "apt-get install docker.io"
		return f
	}
	out, err := exec.CommandContext(ctx, path, "version", "--format", "{{.Server.Version}}").Output()
	if err != nil {
		f.Found, f.Problem, f.Fix = path, "the engine does not answer", "start the Docker service"
		return f
	}
	f.OK, f.Found = true, "engine "+strings.TrimSpace(string(out))
	return f
}
