package local_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/unguarded"
)

// plant makes a tree; names that end in / are directories.
func plant(t *testing.T, files ...string) string {
	t.Helper()
	dir := lab.Open(t)
	for _, f := range files {
		at := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f, "/") {
			if err := os.MkdirAll(at, 0o755); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(at, []byte("#!/bin/sh\necho "+filepath.Base(f)+" runs\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// What a person names is not shown when it holds what no agent may have.
func TestPathsThatAreNotShown(t *testing.T) {
	user, home := lab.Open(t), lab.Open(t)
	t.Setenv("HOME", user)
	key := plant(t, "x")
	if err := os.WriteFile(filepath.Join(key, "server.key"), []byte("-----BEGIN PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	listening := plant(t, "run/x")
	l, err := net.Listen("unix", filepath.Join(listening, "run", "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	linked := filepath.Join(plant(t, "x"), "link")
	if err := os.Symlink(plant(t, ".ssh/id_ed25519"), linked); err != nil {
		t.Fatal(err)
	}
	for what, path := range map[string]string{
		"nothing": filepath.Join(user, "none"), "the root": "/", "all homes": "/home", "the user's": user, "above it": filepath.Dir(user), "thole's": home, "in thole's": home + "/objects",
		"settings": "/etc", "a key of the system": "/etc/ssl", "sockets of the system": "/run", "processes": "/proc/self", "cargo's tokens": plant(t, "bin/cargo", "credentials.toml"),
		"npm's": plant(t, "a/b/.npmrc"), "ssh's": plant(t, "deep/.ssh/"), "in ssh's": plant(t, ".ssh/sub/x") + "/.ssh/sub", "a key": key, "a login": plant(t, "x/auth.json"), "a socket": listening, "a link to keys": linked,
		"the agent's home": "/home/agent",
	} {
		if what == "in thole's" {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := local.CheckPath(path, home); thole.CodeOf(err) != thole.CodeInvalid || thole.HintOf(err) == "" || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %s may be shown: %v", what, path, err)
		}
	}
	for what, path := range map[string]string{"a toolchain": plant(t, "bin/cargo", "lib/rustlib/x", "share/doc/credentials/"), "one of the system": "/usr/lib", "a program": plant(t, "tool") + "/tool"} {
		if err := local.CheckPath(path, home); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A toolchain that a person names is found and run in the box and cannot be changed
// there; one that holds keys keeps the executor from starting. So do certificates.
func TestWhatAPersonShows(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := setup(t, lab.Bwrap(t))
		tools := plant(t, "bin/mycc", "lib/x")
		ca := filepath.Join(tools, "lib", "ca.crt")
		if err := os.WriteFile(ca, certificate(t), 0o644); err != nil {
			t.Fatal(err)
		}
		with := func(ca string, paths ...string) {
			b.driver = local.New(local.Config{Root: b.root, Binary: binary, Bwrap: lab.Bwrap(t), CA: ca, Tools: func() local.Tools { return local.Tools{Paths: paths} }})
		}
		for what, start := range map[string]func(){
			"holds keys":         func() { with("", plant(t, "bin/x", ".netrc")) },
			"has no certificate": func() { with(filepath.Join(tools, "bin", "mycc")) },
			"no such file":       func() { with(filepath.Join(tools, "none")) },
		} {
			start()
			if _, err := b.driver.Start(t.Context(), b.id); err == nil || thole.CodeOf(err) != thole.CodeInvalid || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
		}
		with(ca, tools)
		got := b.attack(b.start(), "mycc; rm -f "+tools+"/bin/mycc 2>/dev/null || echo kept; touch "+tools+"/new 2>/dev/null || echo closed; "+
			`for f in "$SSL_CERT_FILE" "$NODE_EXTRA_CA_CERTS" "$GIT_SSL_CAINFO"; do grep -c 'BEGIN CERT' "$f" | grep -qv '^0$' && echo trusted; done; echo x 2>/dev/null >> "$SSL_CERT_FILE" || echo closed`)
		if want := "mycc runs\nkept\nclosed\ntrusted\ntrusted\ntrusted\nclosed\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if err := os.WriteFile(ca, append(certificate(t), "-----BEGIN PRIVATE KEY-----\n"...), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := local.CheckCA(ca); thole.CodeOf(err) != thole.CodeInvalid || !strings.Contains(err.Error(), "private key") {
			t.Errorf("certificates with a key: %v", err)
		}
	})
}

// A person who names more than a toolchain does not hand their keys to agents: on the
// build without the guards an agent reads them.
func TestKeysNextToAToolchain(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := setup(t, lab.Bwrap(t))
		tools := plant(t, "bin/mycc", ".netrc")
		b.driver = local.New(local.Config{Root: b.root, Binary: binary, Bwrap: lab.Bwrap(t), Tools: func() local.Tools { return local.Tools{Paths: []string{tools}} }})
		_, err := b.driver.Start(t.Context(), b.id)
		if (err == nil) != unguarded.Build {
			t.Fatalf("the executor started: %v", err)
		}
		if unguarded.Build {
			if got := b.attack(b.start(), "cat "+tools+"/.netrc"); !strings.Contains(got, ".netrc runs") {
				t.Errorf("the attack does not work any more, nothing is proven: %q", got)
			}
		}
	})
}

func certificate(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
