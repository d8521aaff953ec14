package registry

import (
	"encoding/json"
	"os"
	"sync"
	"syscall"

	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// Probes keeps in the home what each CLI said of itself, by the file that said it
// and by the program that asked: another version of either asks again. A file that
// cannot be read is no knowledge, and nothing worse.
type Probes struct {
	path string // "": nothing is kept
	self stamp

	mu  sync.Mutex // guards all
	all map[string]probe
}

type probe struct {
	Asked stamp         `json:"asked_by"`
	Said  stamp         `json:"said_by"`
	Info  provider.Info `json:"info"`
}

// stamp distinguishes one file from another that took its place.
type stamp struct {
	Path  string `json:"path"`
	Size  int64  `json:"size"`
	Time  int64  `json:"mtime_ns"`
	Inode uint64 `json:"inode"`
}

func stampOf(path string) (stamp, bool) {
	st, err := os.Stat(path)
	if path == "" || err != nil {
		return stamp{}, false
	}
	s := stamp{Path: path, Size: st.Size(), Time: st.ModTime().UnixNano()}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		s.Inode = sys.Ino
	}
	return s, true
}

func OpenProbes(path string) *Probes {
	k := &Probes{path: path, all: map[string]probe{}}
	if exe, err := os.Executable(); err == nil {
		k.self, _ = stampOf(exe)
	}
	if data, err := os.ReadFile(path); err == nil && strictjson.Unmarshal(data, &k.all) != nil {
		k.all = map[string]probe{}
	}
	return k
}

func (k *Probes) get(name, binary string) (provider.Info, bool) {
	if k == nil {
		return provider.Info{}, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now, there := stampOf(binary)
	p, ok := k.all[name]
	return p.Info, ok && there && p.Said == now && p.Asked == k.self && p.Info.Available
}

// put keeps what a binary said, if it is still the file that was there before it
// was asked.
func (k *Probes) put(name string, before stamp, info provider.Info) error {
	now, there := stampOf(info.Binary)
	if k == nil || !there || now != before {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all[name] = probe{Asked: k.self, Said: now, Info: info}
	data, err := json.MarshalIndent(k.all, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(k.path, data, 0o600)
}
