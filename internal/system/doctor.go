package system

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/provider/testprovider"
)

// Finding is what the doctor says about one part: fine, or what is wrong, what
// that disables and the command that helps.
type Finding struct {
	Part     string `json:"part"`
	OK       bool   `json:"ok"`
	Found    string `json:"found,omitempty"`
	Problem  string `json:"problem,omitempty"`
	Disables string `json:"disables,omitempty"`
	Fix      string `json:"fix,omitempty"`
	// Needed: without it thole does not work at all.
	Needed bool `json:"needed,omitempty"`
}

// Doctor looks at this machine. It changes nothing and starts nothing that stays.
func Doctor(ctx context.Context, cfg *config.Config) []Finding {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	var out []Finding
	out = append(out, checkHome(cfg.Home), checkSocket(cfg.Home), checkPort(cfg.HTTP.Listen))
	out = append(out, checkProviders(ctx, cfg)...)
	return append(out, checkChannel(ctx, cfg), checkBubblewrap(ctx, cfg), checkLimits(cfg.Executor), checkObjects(cfg), checkDocker(ctx))
}

func checkProviders(ctx context.Context, cfg *config.Config) []Finding {
	list := Providers(cfg.Providers)
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
	sortFindings(out)
	return out
}

func sortFindings(list []Finding) {
	for i := range list {
		for j := i; j > 0 && list[j].Part < list[j-1].Part; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
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

func checkPort(listen string) Finding {
	f := Finding{Part: "http", Found: listen, Disables: "thole up"}
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		f.Problem, f.Fix = err.Error(), "end the program that has it, or set http.listen to another port"
		return f
	}
	ln.Close()
	f.OK = true
	return f
}

func checkBubblewrap(ctx context.Context, cfg *config.Config) Finding {
	f := Finding{Part: "bubblewrap", Disables: "isolation of local executors: agents see the whole machine"}
	path, err := exec.LookPath("bwrap")
	if err != nil {
		f.Problem, f.Fix = "not installed", "apt-get install bubblewrap"
		return f
	}
	f.Found = path
	if err := local.New(local.Config{Root: filepath.Join(cfg.Home, "x"), Bwrap: path}).Check(ctx); err != nil {
		f.Problem, f.Fix = err.Error(), "sysctl kernel.unprivileged_userns_clone=1"
		return f
	}
	f.OK = true
	return f
}

// endpointAddress is where the server of a URL listens.
func endpointAddress(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return endpoint
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), u.Scheme))
}

func checkObjects(cfg *config.Config) Finding {
	f := Finding{Part: "objects", OK: true, Found: "directory in the home"}
	if cfg.Objects.Kind == "s3" {
		f = Finding{Part: "objects", Found: "s3 " + cfg.Objects.Endpoint + "/" + cfg.Objects.Bucket, Disables: "sync of workspaces"}
		conn, err := net.DialTimeout("tcp", endpointAddress(cfg.Objects.Endpoint), 3*time.Second)
		if err != nil {
			f.Problem, f.Fix = err.Error(), "start the S3 server, or correct objects.endpoint"
			return f
		}
		conn.Close()
		f.OK = true
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
