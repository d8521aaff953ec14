package repository

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// module is one that thole itself needs, so that the machine has it.
const module = "github.com/dustin/go-humanize"

// goModule makes a repository of a module of the module cache.
func (r *rig) goModule(dir string) {
	r.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		r.Fatal(err)
	}
	r.tool("/", "cp", "-r", strings.TrimSpace(string(out)), dir)
	r.tool("/", "chmod", "-R", "u+w", dir)
	r.commit(dir)
}

func (r *rig) npmPackage(dir string) {
	r.Helper()
	r.write(filepath.Join(dir, "package.json"), `{"name":"left","version":"1.0.0","scripts":{"test":"node --test"}}`+"\n")
	r.write(filepath.Join(dir, "index.js"), "exports.left = (s) => s.trimStart();\n")
	r.write(filepath.Join(dir, "README.md"), "# Left\n")
	r.write(filepath.Join(dir, "index.test.js"), "require('node:test')('left', () => require('node:assert').equal(require('./index.js').left(' x'), 'x'));\n")
	r.commit(dir)
}

// plainly is what git says of a thread's files: their difference from the beginning, and
// their tree. It looks at a copy, in a repository of its own.
func (r *rig) plainly(repo, thread string) (diff, tree string) {
	r.Helper()
	dir := filepath.Join(lab.Open(r), "copy")
	r.git("/", "clone", "-q", "--no-checkout", repo, dir)
	r.tool(r.files(thread), "sh", "-c", `tar -c --exclude=./.git . | tar -xo -C "$1"`, "sh", dir)
	r.git(dir, "add", "-A")
	return r.git(dir, "diff", "--cached", "--full-index", "--binary", "main"), r.git(dir, "write-tree")
}

// Each agent changes a project and runs its tests with the tools of the machine. What
// came of it is everywhere the same and is what git says, and it can be taken over next to
// the user's own changes, as a branch, and back.
func TestWorkOnARepository(t *testing.T) {
	for _, name := range []string{"go", "npm"} {
		_, err := exec.LookPath(name)
		lab.Need(t, name, err)
	}
	// What every box would compile for itself is compiled once; an agent writes in a copy.
	built := filepath.Join(lab.Open(t), "built")
	r := newRig(t, "CGO_ENABLED=0", "GOFLAGS=-vet=off", "GOTOOLCHAIN=local", config.Variable("executor.paths")+"="+built)
	warm := filepath.Join(lab.Open(t), "warm")
	r.goModule(warm)
	r.tool(warm, "env", "GOCACHE="+built, "go", "test", ".")
	r.open()
	goWork := `sim: write made_test.go package humanize\n\nimport "testing"\n\nfunc TestMade(t *testing.T) { println("MADE") }\n ;; run sed -i 's/^go 1.16$/go 1.17/' go.mod; rm LICENSE; cp -r ` + built + ` /tmp/built && GOCACHE=/tmp/built go test -v . ;; say tests: %tool%`
	for _, c := range []struct {
		name, model, work, says string
		make                    func(*rig, string)
	}{
		{"codex", "codex/default", goWork, "--- PASS: TestMade", (*rig).goModule},
		{"claude", "claude/default", goWork, "--- PASS: TestMade", (*rig).goModule},
		{"opencode", "opencode/default", goWork, "--- PASS: TestMade", (*rig).goModule},
		{"npm", "opencode/default", `sim: write made.test.js require('node:test')('made', () => {});\n ;; run echo '// more' >> index.js; npm test ;; say tests: %tool%`, "pass 2", (*rig).npmPackage},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, repo := r.of(t), filepath.Join(lab.Open(t), "repo")
			c.make(r, repo)
			thread, out := r.run(repo, c.model, "Make it so. "+c.work)
			if !strings.Contains(out, c.says) {
				t.Errorf("the tests did not pass:\n%s", out)
			}
			if now := r.git(repo, "status", "--porcelain"); now != "" {
				t.Errorf("the user's files changed: %s", now)
			}

			want, tree := r.plainly(repo, thread)
			if strings.Count(want, "diff --git") < 2 {
				t.Fatalf("nothing changed:\n%s", want)
			}
			var changes struct{ Files []struct{ Patch string } }
			if err := json.Unmarshal(r.get("/sessions/"+thread+"/changes?patches=true"), &changes); err != nil {
				t.Fatal(err)
			}
			var each strings.Builder
			for _, f := range changes.Files {
				each.WriteString(f.Patch)
			}
			for where, got := range map[string]string{"thread diff": r.thole(repo, "thread", "diff", thread), "HTTP": string(r.get("/sessions/" + thread + "/changes/patch")), "HTTP by file": each.String()} {
				if got != want {
					t.Errorf("%s has\n%s\ngit says\n%s", where, got, want)
				}
			}

			r.write(filepath.Join(repo, "README.md"), "mine\n")
			r.write(filepath.Join(repo, "mine"), "mine\n")
			r.thole(repo, "thread", "apply", thread)
			if readme, mine := text(filepath.Join(repo, "README.md")), text(filepath.Join(repo, "mine")); readme+mine != "mine\nmine\n" {
				t.Errorf("the user's own changes are %q %q", readme, mine)
			}
			r.git(repo, "stash", "push", "-q", "-u", "--", "README.md", "mine")
			r.git(repo, "add", "-A")
			if got := r.git(repo, "write-tree"); got != tree {
				t.Errorf("applied was %s", r.git(repo, "diff", "--cached", "main"))
			}
			r.git(repo, "reset", "-q", "--hard")

			r.thole(repo, "thread", "pull", thread)
			branch := strings.TrimSpace(r.git(repo, "for-each-ref", "--format=%(refname)", "refs/heads/thole"))
			if got := r.git(repo, "rev-parse", branch+"^{tree}"); got != tree || r.git(repo, "rev-parse", branch+"~1") != r.git(repo, "rev-parse", "main") {
				t.Errorf("pulled was %s", r.git(repo, "log", "-p", "main.."+branch))
			}
			r.thole(repo, "thread", "undo", thread)
			if got := r.thole(repo, "thread", "diff", thread); got != "" {
				t.Errorf("after the undo the diff is\n%s", got)
			}
			if got, _ := r.plainly(repo, thread); got != "" {
				t.Errorf("after the undo git says\n%s", got)
			}
		})
	}
}
