package local

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/internal/toolchain"
	"github.com/tholehq/thole/internal/unguarded"
)

// What of the user's shell agents have is decided by package toolchain; here it is
// shown, laid and handed over.

// sandboxTools is where the box shows the files of a plan.
const sandboxTools = sandboxRun + "/tools"

// SystemPath reports whether every box shows a path.
func SystemPath(path string) bool { return sandbox.InSystem(path + "/") }

// MayShow judges what nobody typed, for package toolchain: home is thole's.
func MayShow(home string) func(path string) error {
	return func(path string) error {
		if unguarded.Build {
			return nil
		}
		if st, err := os.Stat(path); err == nil && os.Geteuid() == 0 && st.Mode().Perm()&0o005 != 0o005 {
			return errors.New("is not for everyone to read, and agents of root are other users")
		}
		return Judge(path, home)
	}
}

// CheckTyped refuses directories of executor.path that cannot be shown. Those of a PATH
// that was inherited are left out instead: nobody typed them.
func CheckTyped(p toolchain.Plan) error {
	for _, e := range p.Entries {
		if e.Typed && e.LeftOut != "" {
			return thole.Errorf(thole.CodeInvalid, "executor.path: %s cannot be shown to agents: %s", e.Dir, e.LeftOut).
				WithHint("name the directory of the programs themselves, or remove it from executor.path")
		}
	}
	return nil
}

// apartFrom leaves out what lies in the user's own directory that a thread works in, or
// around it: there the directory itself is shown, and the agent writes in it.
func (t Tools) apartFrom(source thole.Source) Tools {
	if source.InPlace() {
		t.User.Show = slices.DeleteFunc(slices.Clone(t.User.Show), func(p string) bool { return within(p, source.Dir) || within(source.Dir, p) })
	}
	return t
}

// layTools writes the files of a plan where no agent writes, and returns the variables
// that name them at the place at which they are seen.
func (d *Driver) layTools(id thole.ExecutorID, p toolchain.Plan, boxed bool) (map[string]string, error) {
	dir, at := d.dir(id, own, "tools"), sandboxTools
	if !boxed {
		at = dir
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	for name, text := range p.Files {
		if err := atomicfile.Write(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	env := map[string]string{}
	for name, file := range p.FileVars {
		env[name] = filepath.Join(at, file)
	}
	return env, nil
}

// handTools is the variable by which executord learns what its programs get.
// A workspace that is a copy is set up: the user's own directory has been.
func (d *Driver) handTools(id thole.ExecutorID, from thole.Source, p toolchain.Plan, boxed bool) (string, error) {
	files, err := d.layTools(id, p, boxed)
	if err != nil {
		return "", err
	}
	env := maps.Clone(p.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, files)
	setup := wire.Setup{Timeout: d.cfg.SetupTimeout, Auto: slices.Contains([]thole.SourceKind{thole.SourceBranch, thole.SourceUpload, thole.SourceTemplate}, from.Kind)}
	text, err := json.Marshal(wire.Tools{Env: env, Seeds: p.Seeds, Setup: setup})
	return wire.ToolsVariable + "=" + string(text), err
}

// maxCertificates bounds a file of certificates.
const maxCertificates = 4 << 20

// certificates are those of the user's files that neither the system's nor one before
// has. A file without any, or with a key in it, is left out: programs of the user's read
// it, and nobody typed it for agents.
func certificates(known []byte, files []string) (out []byte) {
	seen := map[string]bool{}
	each(known, func(b *pem.Block) { seen[string(b.Bytes)] = true })
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(f, maxCertificates))
		f.Close()
		if err != nil || strings.Contains(string(text), "PRIVATE KEY-----") {
			continue
		}
		each(text, func(b *pem.Block) {
			if !seen[string(b.Bytes)] {
				seen[string(b.Bytes)] = true
				out = append(out, pem.EncodeToMemory(&pem.Block{Type: b.Type, Bytes: b.Bytes})...)
			}
		})
	}
	return out
}

func each(text []byte, do func(*pem.Block)) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			do(block)
		}
	}
}

// systemCA is the system's own file of certificates.
func systemCA() []byte {
	for _, path := range systemCAs {
		if text, err := os.ReadFile(path); err == nil {
			return text
		}
	}
	return nil
}

// placeCA puts the certificates that agents trust into one file, if they are more than
// the system's: the variables that lead programs to it stand in for that.
func (d *Driver) placeCA(id thole.ExecutorID, p toolchain.Plan) (placed bool, err error) {
	all := systemCA()
	if d.cfg.CA != "" {
		given, err := CheckCA(d.cfg.CA)
		if err != nil {
			return false, err
		}
		all = slices.Concat(given, []byte("\n"), all)
	}
	more := certificates(all, p.Certificates)
	at := d.dir(id, own, "ca.pem")
	if d.cfg.CA == "" && len(more) == 0 {
		if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, err
		}
		return false, nil
	}
	return true, atomicfile.Write(at, slices.Concat(all, []byte("\n"), more), 0o644)
}
