package codex

import (
	"bufio"
	"io"
	"io/fs"
	"os"
	"regexp"
	"sync"
	"syscall"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/base"
	"github.com/tholehq/thole/internal/strictjson"
)

// maxMeta bounds the first line of a rollout, which holds codex's instructions.
const maxMeta = 1 << 20

var providerID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) })

// threadProvider is the model provider that the thread to take up began with, "" where
// there is none or it does not say. Agents write what it reads, so it is a name and
// nothing else.
func threadProvider(cfg provider.SessionConfig) string {
	if !thole.ValidUUID(cfg.Resume) {
		return ""
	}
	data, err := base.OpenFiles(cfg, cfg.Data)
	if err != nil {
		return ""
	}
	defer data.Close()
	files, _ := fs.Glob(data.FS(), "sessions/*/*/*/rollout-*-"+cfg.Resume+".jsonl")
	if len(files) == 0 {
		return ""
	}
	f, err := data.OpenFile(files[0], os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return ""
	}
	line, err := bufio.NewReader(io.LimitReader(f, maxMeta)).ReadBytes('\n')
	var meta struct {
		Payload struct {
			Provider string `json:"model_provider"`
		} `json:"payload"`
	}
	if err != nil || strictjson.Unmarshal(line, &meta) != nil || !providerID().MatchString(meta.Payload.Provider) {
		return ""
	}
	return meta.Payload.Provider
}
