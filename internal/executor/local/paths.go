package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/internal/unguarded"
)

// keyDirs and keyFiles are names under which people and programs keep what proves who
// they are. What noDirs hold is shown to nobody, and nothing covers them.
var (
	keyDirs  = []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".mozilla", "gcloud", "keyrings"}
	keyFiles = []string{"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "credentials", "credentials.toml", "credentials.json",
		".netrc", ".git-credentials", ".pypirc", ".npmrc", ".env"}
	noDirs = []string{"/etc", "/proc", "/sys", "/dev", "/run", "/var/run", "/boot", sandboxWorkspace, sandboxHome}
)

// holdsKeys reports whether such a thing lies under a name. Logins of agents are keys
// too.
func holdsKeys(name string, dir bool) bool {
	if slices.Contains(map[bool][]string{true: keyDirs, false: keyFiles}[dir], name) {
		return true
	}
	return slices.ContainsFunc(table.CLIs, func(c table.CLI) bool {
		return dir && name == filepath.Base(c.Home) && strings.HasPrefix(name, ".") || !dir && name == c.Login.File
	})
}

// How far CheckPath looks. It catches a mistake of who named the path; it is no
// proof that a large tree holds no secret.
const (
	keyDepth   = 3
	keyEntries = 20_000
)

// CheckPath refuses a path that agents must not be shown, although a person named
// it: one that holds keys, sockets, the user's home or thole's.
func CheckPath(path, home string) error {
	if err := Judge(path, home); err != nil {
		return thole.Errorf(thole.CodeInvalid, "executor.paths: %s %w", path, err).
			WithHint("name the directory of the toolchain itself, such as ~/.rustup/toolchains/NAME or ~/.nvm/versions/node/VERSION, with its full path")
	}
	return nil
}

// Judge is why agents must not be shown a path, nil if they may be.
func Judge(path, home string) error {
	no := fmt.Errorf
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return no("cannot be shown to agents: %w", err)
	}
	for _, p := range []string{path, real} {
		if sandbox.InSystem(p) {
			continue
		}
		if user, err := os.UserHomeDir(); err == nil && within(user, p) {
			return no("holds your whole home directory")
		}
		if within(home, p) || within(p, home) {
			return no("holds thole's own files")
		}
		for _, dir := range noDirs {
			if within(p, dir) || within(dir, p) {
				return no("is not for agents: it covers %s, or is in it", dir)
			}
		}
		for name := range strings.SplitSeq(p, "/") {
			if holdsKeys(name, true) {
				return no("is in %s, which holds keys", name)
			}
		}
	}
	if sandbox.InSystem(real) {
		return nil
	}
	seen, top := 0, strings.Count(real, "/")
	return filepath.WalkDir(real, func(at string, e fs.DirEntry, err error) error {
		if seen++; seen > keyEntries {
			return filepath.SkipAll
		}
		switch {
		case err != nil:
			return nil //nolint:nilerr // what we cannot read an agent cannot either
		case e.Type()&fs.ModeSocket != 0:
			return no("has the socket %s in it: an agent could talk to the program that listens", at)
		case holdsKeys(e.Name(), e.IsDir()), privateKey(at, e):
			return no("holds keys: %s", at)
		case e.IsDir() && strings.Count(at, "/")-top >= keyDepth:
			return filepath.SkipDir
		}
		return nil
	})
}

// Shown reports whether a box shows a file to agents, given what a person shows them.
func Shown(path string, paths []string) bool {
	all := []string{path}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		all = append(all, filepath.Join(dir, filepath.Base(path)))
	}
	if file, err := filepath.EvalSymlinks(path); err == nil { // itself a link
		all = append(all, file)
	}
	return slices.ContainsFunc(all, func(p string) bool {
		return sandbox.InSystem(p) || slices.ContainsFunc(paths, func(dir string) bool { return within(p, dir) }) ||
			slices.ContainsFunc(etcNames, func(name string) bool { return within(p, "/etc/"+name) })
	})
}

// checkShown looks at what a person named before anything starts.
func (d *Driver) checkShown() error {
	tools := d.cfg.Tools()
	for _, p := range tools.Paths {
		if err := CheckPath(p, d.cfg.Home); err != nil && !unguarded.Build {
			return err
		}
	}
	if err := CheckTyped(tools.User); err != nil {
		return err
	}
	if d.cfg.CA != "" {
		_, err := CheckCA(d.cfg.CA)
		return err
	}
	return nil
}

// within reports whether a path is a directory or lies in it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func privateKey(at string, e fs.DirEntry) bool {
	if ext := filepath.Ext(at); !e.Type().IsRegular() || ext != ".pem" && ext != ".key" {
		return false
	}
	f, err := openRegular(at, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, 4<<10))
	return strings.Contains(string(head), "PRIVATE KEY-----")
}

// systemCAs are the places of a system's certificates, the first that is there.
var systemCAs = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}

// CheckCA refuses a file that holds no certificate, or a key with them.
func CheckCA(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(text), "-----BEGIN CERTIFICATE-----") {
		err = errors.New("it has no certificate in it")
	}
	if err == nil && strings.Contains(string(text), "PRIVATE KEY-----") {
		err = errors.New("it has a private key in it, which agents would read")
	}
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "egress.ca_file %s cannot be shown to agents: %w", path, err).
			WithHint("name a file with the certificates of your authority, in PEM")
	}
	return text, nil
}

// KeyDir reports whether a directory of this name is where people keep keys.
func KeyDir(name string) bool { return holdsKeys(name, true) }
