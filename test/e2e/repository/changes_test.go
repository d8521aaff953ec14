package repository

import (
	"encoding/base64"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/testkit/gitremote"
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
	_, err := exec.LookPath("go")
	lab.Need(t, "go", err)
	// What every box would compile for itself is compiled once; an agent writes in a copy.
	built := filepath.Join(lab.Open(t), "built")
	sshd, remotes := gitremote.SSH(t), lab.Open(t)
	r := newRig(t, "GIT_SSH_COMMAND="+sshd.Command(), "NO_PROXY=127.0.0.1", "CGO_ENABLED=0", "GOFLAGS=-vet=off", "GOTOOLCHAIN=local", config.Variable("executor.paths")+"="+built)
	warm := filepath.Join(lab.Open(t), "warm")
	r.goModule(warm)
	r.tool(warm, "env", "GOCACHE="+built, "go", "test", ".")
	r.open()
	url := gitremote.HTTP(t, remotes)
	r.write(filepath.Join(r.Dir, ".gitconfig"), "[safe]\n\tdirectory = *\n[http \""+url+"\"]\n\textraHeader = Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte(gitremote.User+":"+gitremote.Password))+"\n")
	reached := map[string]string{"codex": "file://" + remotes, "claude": url, "opencode": sshd.URL + remotes}
	goWork := `sim: write made_test.go package humanize\n\nimport "testing"\n\nfunc TestMade(t *testing.T) { println("MADE") }\n ;; run sed -i 's/^go 1.16$/go 1.17/' go.mod; rm LICENSE; cp -r ` + built + ` /tmp/built && GOCACHE=/tmp/built go test -v . ;; say tests: %tool%`
	for _, agent := range []string{"codex", "claude", "opencode"} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			r := r.of(t)
			thread, repo, tree := r.work(agent+"/default", goWork, "--- PASS: TestMade", (*rig).goModule)
			r.pushed(thread, repo, tree, filepath.Join(remotes, agent+".git"), reached[agent]+"/"+agent+".git")
		})
	}
}

// So does an agent with a package of node.
func TestWorkOnAPackage(t *testing.T) {
	_, err := exec.LookPath("npm")
	lab.Need(t, "npm", err)
	r := newRig(t)
	r.open()
	r.work("codex/default", `sim: write made.test.js require('node:test')('made', () => {});\n ;; run echo '// more' >> index.js; npm test ;; say tests: %tool%`, "pass 2", (*rig).npmPackage)
}

// work has an agent change a repository, and follows what it did on every way out.
func (r *rig) work(model, task, says string, prepare func(*rig, string)) (thread, repo, tree string) {
	r.Helper()
	repo = filepath.Join(lab.Open(r), "repo")
	prepare(r, repo)
	thread, out := r.run(repo, model, "Make it so. "+task)
	if !strings.Contains(out, says) {
		r.Errorf("the tests did not pass:\n%s", out)
	}
	if now := r.git(repo, "status", "--porcelain"); now != "" {
		r.Errorf("the user's files changed: %s", now)
	}

	want, tree := r.plainly(repo, thread)
	if strings.Count(want, "diff --git") < 2 {
		r.Fatalf("nothing changed:\n%s", want)
	}
	var changes struct{ Files []struct{ Patch string } }
	if err := json.Unmarshal(r.get("/sessions/"+thread+"/changes?patches=true"), &changes); err != nil {
		r.Fatal(err)
	}
	var each strings.Builder
	for _, f := range changes.Files {
		each.WriteString(f.Patch)
	}
	for where, got := range map[string]string{"thread diff": r.thole(repo, "thread", "diff", thread), "HTTP": string(r.get("/sessions/" + thread + "/changes/patch")), "HTTP by file": each.String()} {
		if got != want {
			r.Errorf("%s has\n%s\ngit says\n%s", where, got, want)
		}
	}

	r.write(filepath.Join(repo, "README.md"), "mine\n")
	r.write(filepath.Join(repo, "mine"), "mine\n")
	r.thole(repo, "thread", "apply", thread)
	if readme, mine := text(filepath.Join(repo, "README.md")), text(filepath.Join(repo, "mine")); readme+mine != "mine\nmine\n" {
		r.Errorf("the user's own changes are %q %q", readme, mine)
	}
	r.git(repo, "stash", "push", "-q", "-u", "--", "README.md", "mine")
	r.git(repo, "add", "-A")
	if got := r.git(repo, "write-tree"); got != tree {
		r.Errorf("applied was %s", r.git(repo, "diff", "--cached", "main"))
	}
	r.git(repo, "reset", "-q", "--hard")

	r.thole(repo, "thread", "pull", thread)
	branch := strings.TrimSpace(r.git(repo, "for-each-ref", "--format=%(refname)", "refs/heads/thole"))
	if got := r.git(repo, "rev-parse", branch+"^{tree}"); got != tree || r.git(repo, "rev-parse", branch+"~1") != r.git(repo, "rev-parse", "main") {
		r.Errorf("pulled was %s", r.git(repo, "log", "-p", "main.."+branch))
	}
	r.thole(repo, "thread", "undo", thread)
	if got := r.thole(repo, "thread", "diff", thread); got != "" {
		r.Errorf("after the undo the diff is\n%s", got)
	}
	if got, _ := r.plainly(repo, thread); got != "" {
		r.Errorf("after the undo git says\n%s", got)
	}
	return thread, repo, tree
}

// pushed takes the undo back and pushes what there was to a bare repository, which is at dir
// and is reached by a URL.
func (r *rig) pushed(thread, repo, tree, dir, url string) {
	r.Helper()
	r.git("/", "clone", "-q", "--bare", repo, dir)
	r.thole(repo, "thread", "undo", thread, "2")
	r.thole(repo, "thread", "push", thread, "--remote", url, "--as", "by/thole")
	if got := r.git(dir, "rev-parse", "by/thole^{tree}"); got != tree {
		r.Errorf("%s has %s", url, r.git(dir, "log", "-p", "main..by/thole"))
	}
	r.git(dir, "fsck", "--strict")
}
