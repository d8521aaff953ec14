package local_test

import (
	"archive/zip"
	"bytes"
	"encoding/pem"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/toolchain"
	"github.com/tholehq/thole/internal/unguarded"
)

// shellOf has a driver start executors with what a shell has.
func (b *bench) shellOf(cfg toolchain.Config) toolchain.Plan {
	b.Helper()
	cfg.System, cfg.Judge = local.SystemPath, local.MayShow(b.root)
	plan := toolchain.Look(b.Context(), cfg)
	b.driver = local.New(local.Config{Root: b.root, Binary: binary, Bwrap: lab.Bwrap(b), Tools: func() local.Tools { return local.Tools{User: plan} }})
	return plan
}

// Programs of the user's are found and run in the box in the order of PATH, with their
// variables, and cannot be changed; what the user keeps next to them is not there.
func TestProgramsOfTheUser(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := setup(t, lab.Bwrap(t))
		home := plant(t, ".cargo/bin/rustup", ".cargo/bin/tool", ".cargo/credentials.toml", ".rustup/toolchains/stable/bin/rustc", ".rustup/settings.toml", ".nvm/versions/node/v1/bin/node", ".nvm/versions/node/v1/lib/x",
			"late/ls", "late/tool", "project/secret", ".npmrc")
		t.Setenv("HOME", home)
		ca := filepath.Join(home, "corp.pem")
		if err := os.WriteFile(ca, certificate(t), 0o644); err != nil {
			t.Fatal(err)
		}
		mixed := filepath.Join(home, "mixed.pem")
		if err := os.WriteFile(mixed, append(certificate(t), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})...), 0o644); err != nil {
			t.Fatal(err)
		}
		var path []string
		for _, dir := range []string{".nvm/versions/node/v1/bin", "/usr/bin", ".cargo/bin", "late"} {
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(home, dir)
			}
			path = append(path, dir)
		}
		b.shellOf(toolchain.Config{Path: path, Home: home, Names: []string{"MY_TOKEN"}, Environ: []string{"TZ=Asia/Tokyo", "LANG=C.UTF-8", "MY_TOKEN=typed", "OTHER_TOKEN=hidden", "SSL_CERT_FILE=" + ca, "PIP_CERT=" + mixed, "HOME=" + home}})
		info := b.start()
		got := b.attack(info, `node; tool; ls `+home+`/.cargo; cat ~/.rustup/toolchains/stable/bin/rustc | tail -1; date +%Z; echo "$MY_TOKEN$OTHER_TOKEN"; grep -c . "$AWS_CA_BUNDLE" | grep -qv '^0$' && echo trusted; git config --system safe.directory; `+
			`for f in `+home+`/.cargo/bin/tool `+home+`/.nvm/versions/node/v1/lib/new `+home+`/.rustup/toolchains/new /run/thole/tools/gitconfig; do (echo x > $f) 2>/dev/null && echo wrote $f; done; ls -A `+home+`; cat `+home+`/.npmrc `+home+`/project/secret 2>/dev/null; echo end`)
		if want := "node runs\ntool runs\nbin\necho rustc runs\nJST\ntyped\ntrusted\n*\n.cargo\n.nvm\n.rustup\nlate\nend\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		trusted := contents(t, filepath.Join(b.root, string(b.id), "own", "ca.pem"))
		for file, want := range map[string]bool{ca: true, mixed: false} {
			if block, _ := pem.Decode(contents(t, file)); bytes.Contains(trusted, pem.EncodeToMemory(block)) != want {
				t.Errorf("the certificate of %s is trusted: %v", file, !want)
			}
		}
	})
}

func contents(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A directory with keys, or a link to one, is not shown because it is on PATH, and what a
// person typed keeps the executor from starting. On the build without the guards an agent
// reads the keys.
func TestKeysNextToProgramsOnPATH(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := setup(t, lab.Bwrap(t))
		home := plant(t, ".ssh/id_ed25519", "bin/x", "bin/.netrc", "fine/x", ".cargo/bin/y", ".cargo/credentials.toml")
		t.Setenv("HOME", home)
		if err := os.Symlink(filepath.Join(home, ".ssh"), filepath.Join(home, "tools")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(home, ".ssh", "id_ed25519"), filepath.Join(home, "fine", "key")); err != nil {
			t.Fatal(err)
		}
		path := []string{filepath.Join(home, ".ssh"), filepath.Join(home, "tools"), filepath.Join(home, "bin"), filepath.Join(home, "fine"), home, filepath.Join(home, ".cargo/bin")}
		plan := b.shellOf(toolchain.Config{Path: path, Home: home, Bare: true})
		got := b.attack(b.start(), "cat "+home+"/.ssh/id_ed25519 "+home+"/tools/id_ed25519 "+home+"/fine/key "+home+"/bin/.netrc "+home+"/.cargo/credentials.toml 2>/dev/null; x; y")
		if unguarded.Build {
			if !strings.Contains(got, "id_ed25519") || !strings.Contains(got, ".netrc runs") {
				t.Errorf("the attack does not work any more, nothing is proven: %q", got)
			}
			return
		}
		if got != "x runs\ny runs\n" {
			t.Errorf("in the box: %q", got)
		}
		for i, want := range []string{"holds keys", "holds keys", "holds keys", "", "whole home", ""} {
			if why := plan.Entries[i].LeftOut; (why == "") != (want == "") || !strings.Contains(why, want) {
				t.Errorf("%s: %q, want %q", path[i], why, want)
			}
		}
		if err := b.driver.Stop(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
		b.shellOf(toolchain.Config{Path: path[2:3], Typed: path[2:3], Home: home, Bare: true})
		if _, err := b.driver.Start(t.Context(), b.id); thole.CodeOf(err) != thole.CodeInvalid || !strings.Contains(err.Error(), "executor.path") || thole.HintOf(err) == "" {
			t.Errorf("what was typed: %v", err)
		}
	})
}

// The tests of an ordinary project run with the toolchains that this machine's user has.
func TestProjectsOfTheUser(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := setup(t, lab.Bwrap(t))
		home, _ := os.UserHomeDir()
		b.shellOf(toolchain.Config{Path: filepath.SplitList(os.Getenv("PATH")), Home: home, Environ: os.Environ()})
		info := b.start()
		for _, c := range []struct {
			program, command, want string
			soak                   bool
		}{
			{"npm", `mkdir web && cd web && echo '{"scripts":{"test":"node --test"}}' > package.json && echo 'require("node:test")("one", () => {})' > one.test.js && npm test 2>&1`, "pass 1", false},
			{"cargo", `cargo new -q --vcs none --lib rust && cd rust && cargo test -q 2>&1`, "1 passed", false},
			{"python3", `mkdir py && cd py && printf 'import unittest\nclass T(unittest.TestCase):\n  def test(self): pass\n' > test_x.py && python3 -m unittest 2>&1`, "OK", false},
			{"pytest-3", `mkdir pt && cd pt && echo 'def test_x(): pass' > test_x.py && pytest-3 2>&1`, "1 passed", false},
			{"go", `go version && go env GOPROXY`, "go version", false},
			{"go", `mkdir g && cd g && go mod init example.com/g 2>&1 && printf 'package g\nimport "testing"\nfunc Test(t *testing.T) {}\n' > g_test.go && go test 2>&1`, "ok", true},
		} {
			if c.soak && os.Getenv("THOLE_SOAK") == "" {
				continue
			}
			if _, err := exec.LookPath(c.program); err != nil {
				if os.Getuid() == 0 { // another user does not see what is in root's home
					t.Run(c.program, func(t *testing.T) { lab.Need(t, c.program, err) })
				}
				continue
			}
			if got := b.attack(info, c.command); !strings.Contains(got, c.want) {
				t.Errorf("%s: %s", c.program, got)
			}
		}
	})
}

// A repository's setup runs where its agent does, with what that has and no more, before
// it and once, also when the executor starts again.
func TestSetupRunsInTheBox(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := setup(t, lab.Bwrap(t))
		secret := filepath.Join(lab.Open(t), "secret")
		if err := os.WriteFile(secret, []byte("of the host"), 0o644); err != nil {
			t.Fatal(err)
		}
		b.id = thole.NewID[thole.ExecutorID](time.Now())
		if err := b.driver.Create(t.Context(), executor.Spec{ID: b.id, Thread: "thread", Scope: executor.ScopeThread, Files: thole.Source{Kind: thole.SourceBranch}}); err != nil {
			t.Fatal(err)
		}
		files := filepath.Join(b.root, string(b.id), "workspace")
		if err := os.Mkdir(filepath.Join(files, ".thole"), 0o755); err != nil {
			t.Fatal(err)
		}
		script := "echo $(pwd) $(id -u) >> made; cat " + secret + " >> made 2>/dev/null; touch ~/tool /usr/planted; (echo x > /run/thole/tools/gitconfig) 2>/dev/null && echo wrote >> made; true\n"
		if err := os.WriteFile(filepath.Join(files, ".thole", "setup"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		if got := b.attack(b.start(), "cat made; ls ~/tool"); !strings.HasSuffix(got, "/workspace 1000\n/home/agent/tool\n") {
			t.Errorf("in the box: %q", got)
		}
		if err := b.driver.Stop(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
		if got := b.attack(b.start(), "cat made"); got != "/workspace 1000\n" {
			t.Errorf("after a restart: %q", got)
		}
	})
}

// A module that the user has downloaded is taken from there without the network, and its
// cache is not the agent's to write.
func TestModulesOfTheUser(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		_, err := exec.LookPath("go")
		lab.Need(t, "go", err)
		b := setup(t, lab.Bwrap(t))
		const at, mod = "go/pkg/mod/cache/download/example.com/dep/@v/", "module example.com/dep\n"
		home := plant(t, at+"list", "go/pkg/mod/example.com/dep@v1.0.0/dep.go")
		var zipped bytes.Buffer
		z := zip.NewWriter(&zipped)
		for name, text := range map[string]string{"go.mod": mod, "dep.go": "package dep\n"} {
			w, err := z.Create("example.com/dep@v1.0.0/" + name)
			if err == nil {
				_, err = io.WriteString(w, text)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"list": "v1.0.0\n", "v1.0.0.info": `{"Version":"v1.0.0"}`, "v1.0.0.mod": mod, "v1.0.0.zip": zipped.String()} {
			if err := os.WriteFile(filepath.Join(home, at, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("HOME", home)
		b.shellOf(toolchain.Config{Path: filepath.SplitList(os.Getenv("PATH")), Home: home, Environ: []string{"GOSUMDB=off", "GOFLAGS=-mod=mod"}})
		got := b.attack(b.start(), `go mod init example.com/x 2>/dev/null; go get example.com/dep@v1.0.0 2>&1; go env GOMODCACHE; ls `+home+`/go/pkg/mod; (echo x > `+home+`/`+at+`list) 2>/dev/null || echo kept`)
		if want := "go: downloading example.com/dep v1.0.0\ngo: added example.com/dep v1.0.0\n/home/agent/go/pkg/mod\ncache\nkept\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// What is on PATH in the directory that a thread works in is the agent's to change, as the
// rest of it is.
func TestProgramsInTheDirectoryItself(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b, top := setup(t, lab.Bwrap(t)), owned(t)
		dir := filepath.Join(top, "work", "project")
		for _, name := range []string{"work/project/.venv/bin/tool", "work/project/.venv/pyvenv.cfg", "work/bin/other", "work/lib/x"} {
			write(t, filepath.Join(top, name), "#!/bin/sh\necho runs\n")
			if err := os.Chmod(filepath.Join(top, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		b.give(top)
		b.shellOf(toolchain.Config{Path: []string{filepath.Join(dir, ".venv/bin"), filepath.Join(top, "work/bin")}, Home: t.TempDir(), Bare: true})
		b.refile(dir)
		if got := b.attack(b.start(), "tool; echo more > .venv/lib && echo made > file && cat .venv/lib file"); got != "runs\nmore\nmade\n" {
			t.Errorf("in the directory: %q", got)
		}
	})
}
