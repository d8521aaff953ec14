package appserver_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/unguarded"
	"github.com/tholehq/thole/protocol/app"
)

// desk is a connection with a thread that works in a directory.
func desk(t *testing.T, rig *tholetest.Kit) (w *wire, thread, dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w = join(t, rig, full)
	return w, w.thread(params("cwd", dir)), dir
}

// params makes an object of names and values.
func params(pairs ...any) string {
	o := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		o[pairs[i].(string)] = pairs[i+1]
	}
	raw, _ := json.Marshal(o)
	return string(raw)
}

// shell is the params of a command that a shell runs.
func shell(dir, script string, more ...any) string {
	return params(append([]any{"command", []string{"sh", "-c", script}, "cwd", dir}, more...)...)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// The answers of codex app-server 0.166 to the same requests.
func TestCommandsAnswerAsCodexDoes(t *testing.T) {
	rig := tholetest.New(t)
	w, _, dir := desk(t, rig)
	for _, c := range []struct {
		params string
		want   app.CommandExecResult
	}{
		{shell(dir, "echo out; echo err >&2; exit 7"), app.CommandExecResult{ExitCode: 7, Stdout: "out\n", Stderr: "err\n"}},
		{shell(dir, "kill -9 $$"), app.CommandExecResult{ExitCode: 137}},
		{shell(dir, "echo a; exec sleep 60", "timeoutMs", 100), app.CommandExecResult{ExitCode: 124, Stdout: "a\n"}},
		{shell(dir, "printf hello", "outputBytesCap", 3), app.CommandExecResult{Stdout: "hel"}},
		{shell(dir, "printf hello", "outputBytesCap", 0), app.CommandExecResult{}},
		{shell(dir, "cat; pwd"), app.CommandExecResult{Stdout: dir + "\n"}},
		{shell(dir, `echo "$A,$HOME"`, "env", map[string]any{"A": "1", "HOME": nil}), app.CommandExecResult{Stdout: "1,\n"}},
		{shell(dir, `printf '\377x'`), app.CommandExecResult{Stdout: "\ufffdx"}},
		{params("command", []string{"pwd"}), app.CommandExecResult{Stdout: dir + "\n"}},
	} {
		_, m := w.call("command/exec", c.params)
		var got app.CommandExecResult
		if m.Error != nil || json.Unmarshal(m.Result, &got) != nil || got != c.want {
			t.Errorf("%s: %+v %v", c.params, got, m.Error)
		}
	}
	for _, c := range []struct {
		params string
		code   int64
		text   string
	}{
		{`{"command":[]}`, jsonrpc.CodeInvalidRequest, "command must not be empty"},
		{params("command", []string{"nosuchprogram"}, "cwd", dir), jsonrpc.CodeInternal, "failed to spawn command: No such file or directory (os error 2)"},
		{shell(dir, "true", "timeoutMs", -1), jsonrpc.CodeInvalidParams, "command/exec timeoutMs must be non-negative, got -1"},
		{shell(dir, "true", "timeoutMs", 1, "disableTimeout", true), jsonrpc.CodeInvalidParams, "command/exec cannot set both timeoutMs and disableTimeout"},
		{shell(dir, "true", "outputBytesCap", 1, "disableOutputCap", true), jsonrpc.CodeInvalidParams, "command/exec cannot set both outputBytesCap and disableOutputCap"},
		{shell(dir, "true", "tty", true), jsonrpc.CodeInvalidRequest, "command/exec tty or streaming requires a client-supplied processId"},
		{shell(dir, "true", "size", map[string]int{"rows": 1, "cols": 1}), jsonrpc.CodeInvalidParams, "command/exec size requires tty: true"},
		{shell(dir, "true", "tty", true, "processId", "p", "size", map[string]int{"rows": 0, "cols": 1}), jsonrpc.CodeInvalidParams, "command/exec size rows and cols must be greater than 0"},
		{shell(dir, "true", "sandboxPolicy", map[string]any{"type": "readOnly"}), jsonrpc.CodeMethodNotFound, "command/exec sandboxPolicy readOnly: a command has the rights of the thread's executor"},
		{shell(dir, "true", "permissionProfile", ":x"), jsonrpc.CodeMethodNotFound, "command/exec permissionProfile: a command has the rights of the thread's executor"},
	} {
		if e := w.refused("command/exec", c.params); e.Code != c.code || e.Message != c.text {
			t.Errorf("%s: %d %s", c.params, e.Code, e.Message)
		}
	}
}

// Output comes before the answer, and what a client writes reaches the program.
func TestAProgramIsWrittenToAndRead(t *testing.T) {
	rig := tholetest.New(t)
	w, _, dir := desk(t, rig)
	w.send(`{"id":"run","method":"command/exec","params":` + params("command", []string{"cat"}, "cwd", dir, "processId", "c", "streamStdin", true, "streamStdoutStderr", true) + `}`)
	w.ok("command/exec/write", params("processId", "c", "deltaBase64", b64("hey\n")))
	if e := w.refused("command/exec", params("command", []string{"cat"}, "cwd", dir, "processId", "c")); e.Message != `duplicate active command/exec process id: "c"` {
		t.Error(e)
	}
	if e := w.refused("command/exec/resize", `{"processId":"c","size":{"rows":1,"cols":1}}`); e.Message != "failed to resize PTY: process is not attached to a PTY" {
		t.Error(e)
	}
	at, out := w.note(0, "command/exec/outputDelta")
	if out.field("deltaBase64") != b64("hey\n") || out.field("stream") != "stdout" || out.field("capReached") != false {
		t.Errorf("output %s", out.Params)
	}
	w.ok("command/exec/write", `{"processId":"c","closeStdin":true}`)
	end, m := w.find(at, "the program's end", func(m msg) bool { return string(m.ID) == `"run"` })
	if m.Error != nil || string(m.Result) != `{"exitCode":0,"stdout":"","stderr":""}` {
		t.Errorf("ended with %s %v", m.Result, m.Error)
	}
	if e := w.refused("command/exec/write", params("processId", "c", "deltaBase64", b64("x"))); e.Message != `no active command/exec for process id "c"` {
		t.Error(e)
	}
	for _, later := range w.methods(end + 1) {
		if later == "command/exec/outputDelta" {
			t.Error("output after the answer")
		}
	}
	// A terminal has its size from the beginning.
	w.ok("command/exec", shell(dir, "stty size", "processId", "t", "tty", true, "size", map[string]int{"rows": 33, "cols": 101}))
	if _, m := w.find(end, "the size", func(m msg) bool { return m.field("processId") == "t" }); m.field("deltaBase64") != b64("33 101\r\n") {
		t.Errorf("size %s", m.Params)
	}
	w.send(`{"id":"long","method":"command/exec","params":` + shell(dir, "echo $$; exec sleep 1000", "processId", "l", "disableTimeout", true) + `}`)
	w.ok("command/exec/terminate", `{"processId":"l"}`)
	if _, m := w.find(end, "the killed program", func(m msg) bool { return string(m.ID) == `"long"` }); !strings.Contains(string(m.Result), `"exitCode":137`) {
		t.Errorf("killed: %s", m.Result)
	}
}

// A large output arrives whole, however fast the program is, and one that no answer
// could carry is refused by name.
func TestAllOutputArrives(t *testing.T) {
	rig := tholetest.New(t)
	w, _, dir := desk(t, rig)
	n := 5 << 20
	got := w.ok("command/exec", shell(dir, fmt.Sprintf("yes 0123456 | head -c %d", n), "disableOutputCap", true))
	if out := got["stdout"].(string); len(out) != n || strings.Trim(out, "0123456\n") != "" {
		t.Errorf("%d bytes", len(out))
	}
	if got := w.ok("command/exec", shell(dir, fmt.Sprintf("yes | head -c %d", n))); len(got["stdout"].(string)) != 1<<20 {
		t.Errorf("%d bytes by default", len(got["stdout"].(string)))
	}
	if e := w.refused("command/exec", shell(dir, "exec yes", "disableOutputCap", true, "disableTimeout", true)); e.Message != "command/exec output exceeds 8388608 bytes" {
		t.Error(e)
	}
}

// What a connection runs ends with it, and it may run only so much.
func TestProgramsEndWithTheirConnection(t *testing.T) {
	rig := tholetest.New(t)
	w, _, dir := desk(t, rig)
	for i := range 32 {
		w.send(fmt.Sprintf(`{"id":"p%d","method":"command/exec","params":%s}`, i, shell(dir, fmt.Sprintf("echo $$ > pid%d; exec sleep 1000", i), "processId", fmt.Sprint(i), "disableTimeout", true)))
	}
	poll.Until(t, "the programs", func() bool {
		names, _ := filepath.Glob(filepath.Join(dir, "pid*"))
		return len(names) == 32
	})
	if e := w.refused("command/exec", shell(dir, "true")); e.Code != jsonrpc.CodeOverloaded {
		t.Errorf("one too many: %v", e)
	}
	w.close()
	poll.Until(t, "their end", func() bool {
		for i := range 32 {
			var pid int
			text, err := os.ReadFile(filepath.Join(dir, fmt.Sprint("pid", i)))
			if _, serr := fmt.Sscan(string(text), &pid); err != nil || serr != nil || syscall.Kill(pid, 0) == nil {
				return false
			}
		}
		return true
	})
}

// Files are those of a workspace: neither a path nor a link leads out of it.
func TestFilesStayInTheWorkspace(t *testing.T) {
	rig := tholetest.New(t)
	w, thread, dir := desk(t, rig)
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "hidden")
	if err := os.Symlink(secret, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(secret), filepath.Join(dir, "up")); err != nil {
		t.Fatal(err)
	}
	link, up := filepath.Join(dir, "link"), filepath.Join(dir, "up")
	calls := map[string]string{
		"fs/readFile":        params("path", link),
		"fs/writeFile":       params("path", link, "dataBase64", b64("gone")),
		"fs/readDirectory":   params("path", up),
		"fs/getMetadata":     params("path", up+"/secret"),
		"fs/remove":          params("path", up+"/secret", "force", false),
		"fs/createDirectory": params("path", up+"/made"),
		"fs/copy":            params("sourcePath", up+"/secret", "destinationPath", dir+"/copy"),
	}
	if unguarded.Build {
		if got := w.ok("fs/readFile", calls["fs/readFile"]); got["dataBase64"] != b64("hidden") {
			t.Errorf("without the guard a link is read: %v", got)
		}
		return
	}
	for method, p := range calls {
		if e := w.refused(method, p); e.Message != "No such file or directory (os error 2)" && method != "fs/createDirectory" {
			t.Errorf("%s: %v", method, e)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(secret)); err != nil || len(left) != 1 {
		t.Errorf("outside there are %v, %v", left, err)
	}
	for _, path := range []string{secret, dir + "/../x", "/etc/passwd", dir + "x/y", "/"} {
		if e := w.refused("fs/readFile", params("path", path)); code(e) != string(thole.CodeForbidden) {
			t.Errorf("%s: %v", path, e)
		}
		if e := w.refused("command/exec", params("command", []string{"true"}, "cwd", path)); code(e) != string(thole.CodeForbidden) {
			t.Errorf("command in %s: %v", path, e)
		}
		if e := w.refused("fs/readFile", params("path", path, "threadId", thread)); code(e) != string(thole.CodeForbidden) {
			t.Errorf("%s of a thread: %v", path, e)
		}
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "hidden" {
		t.Errorf("the file outside is %q, %v", text, err)
	}
	if e := w.refused("fs/readFile", `{"path":"README.md"}`); e.Message != "Invalid request: AbsolutePathBuf deserialized without a base path" {
		t.Error(e)
	}
}

func code(e *jsonrpc.Error) string {
	var data app.ErrorData
	_ = json.Unmarshal(e.Data, &data)
	return data.Code
}

// Reading, writing, listing, copying and removing, as codex app-server 0.166 answers.
func TestFiles(t *testing.T) {
	rig := tholetest.New(t)
	w, _, dir := desk(t, rig)
	at := func(name string) string { return filepath.Join(dir, name) }
	w.ok("fs/writeFile", params("path", at("a"), "dataBase64", b64("one")))
	w.ok("fs/createDirectory", params("path", at("d/e")))
	w.ok("fs/createDirectory", params("path", at(".git")))
	w.ok("fs/writeFile", params("path", at(".git/x"), "dataBase64", ""))
	w.ok("fs/copy", params("sourcePath", at("a"), "destinationPath", at("d/b")))
	w.ok("fs/copy", params("sourcePath", at("d"), "destinationPath", at("f"), "recursive", true))
	if got := w.ok("fs/readFile", params("path", at("f/e/../b"))); got["dataBase64"] != b64("one") {
		t.Errorf("read %v", got)
	}
	if got := fmt.Sprint(w.ok("fs/readDirectory", params("path", at("f")))["entries"]); !strings.Contains(got, "fileName:b isDirectory:false isFile:true") || !strings.Contains(got, "fileName:e isDirectory:true isFile:false") {
		t.Errorf("listed %s", got)
	}
	if got := w.ok("fs/getMetadata", params("path", at("a"))); got["isFile"] != true || got["isDirectory"] != false || got["isSymlink"] != false || got["modifiedAtMs"].(float64) == 0 {
		t.Errorf("metadata %v", got)
	}
	w.ok("fs/remove", params("path", at("f")))
	w.ok("fs/remove", params("path", at("f")))
	if err := syscall.Mkfifo(at("pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	write(t, at("large"), strings.Repeat("x", 16<<20+1))
	for _, c := range []struct {
		method, params string
		code           int64
		text           string
	}{
		{"fs/readFile", params("path", at("none")), jsonrpc.CodeInternal, "No such file or directory (os error 2)"},
		{"fs/readFile", params("path", at("d")), jsonrpc.CodeInvalidRequest, "path `" + at("d") + "` is not a file"},
		{"fs/readFile", params("path", at("pipe")), jsonrpc.CodeInvalidRequest, "path `" + at("pipe") + "` is not a file"},
		{"fs/readFile", params("path", at("large")), jsonrpc.CodeInvalidRequest, "file exceeds 16777216 bytes"},
		{"fs/readFile", params("path", at("a/b")), jsonrpc.CodeInternal, "Not a directory (os error 20)"},
		{"fs/writeFile", params("path", at("d"), "dataBase64", ""), jsonrpc.CodeInternal, "Is a directory (os error 21)"},
		{"fs/writeFile", params("path", at("a"), "dataBase64", "!"), jsonrpc.CodeInvalidRequest, "fs/writeFile requires valid base64 dataBase64: Invalid symbol 33, offset 0."},
		{"fs/createDirectory", params("path", at("d"), "recursive", false), jsonrpc.CodeInternal, "File exists (os error 17)"},
		{"fs/copy", params("sourcePath", at("d"), "destinationPath", at("g")), jsonrpc.CodeInvalidRequest, "fs/copy requires recursive: true when sourcePath is a directory"},
		{"fs/copy", params("sourcePath", at("pipe"), "destinationPath", at("g")), jsonrpc.CodeInvalidRequest, "fs/copy only supports regular files, directories, and symlinks"},
		{"fs/remove", params("path", at("d"), "recursive", false), jsonrpc.CodeInternal, "Directory not empty (os error 39)"},
		{"fs/remove", params("path", at("f"), "force", false), jsonrpc.CodeInternal, "No such file or directory (os error 2)"},
	} {
		if e := w.refused(c.method, c.params); e.Code != c.code || e.Message != c.text {
			t.Errorf("%s %s: %d %s", c.method, c.params, e.Code, e.Message)
		}
	}
	// A pipe with a reader that does not read would wait for ever.
	reader, err := os.OpenFile(at("pipe"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if e := w.refused("fs/writeFile", params("path", at("pipe"), "dataBase64", b64("x"))); e.Message != "path `"+at("pipe")+"` is not a file" {
		t.Error(e)
	}
}

// Changes are reported once for all that came together, and not after the watch.
func TestWatches(t *testing.T) {
	rig := tholetest.New(t)
	w, _, dir := desk(t, rig)
	if got := w.ok("fs/watch", params("path", dir, "watchId", "dir")); got["path"] != dir {
		t.Errorf("watches %v", got)
	}
	w.ok("fs/watch", params("path", dir+"/not/yet", "watchId", "later"))
	if e := w.refused("fs/watch", params("path", dir, "watchId", "dir")); e.Message != "watchId already exists: dir" {
		t.Error(e)
	}
	changed := func(from int, id string) []any {
		t.Helper()
		_, m := w.find(from, "a change of "+id, func(m msg) bool { return m.Method == "fs/changed" && m.field("watchId") == id })
		return m.field("changedPaths").([]any)
	}
	from := w.len()
	for i := range 1500 { // more than one report names
		write(t, filepath.Join(dir, fmt.Sprint("f", i)), "")
	}
	if got := changed(from, "dir"); len(got) > 1001 {
		t.Errorf("one report names %d paths", len(got))
	}
	from = w.len()
	if err := os.Mkdir(filepath.Join(dir, "not"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "not/yet"), "1")
	if got := changed(from, "later"); !slices.Equal(got, []any{dir + "/not/yet"}) {
		t.Errorf("appeared: %v", got)
	}
	w.ok("fs/unwatch", `{"watchId":"dir"}`)
	w.ok("fs/unwatch", `{"watchId":"never"}`)
	from = w.len()
	write(t, filepath.Join(dir, "after"), "")
	if err := os.Remove(filepath.Join(dir, "not/yet")); err != nil {
		t.Fatal(err)
	}
	changed(from, "later")
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.got[from:] {
		if m.field("watchId") == "dir" {
			t.Errorf("after the end of the watch: %s", m.Params)
		}
	}
}

// A connection watches only so much.
func TestWatchesAreBounded(t *testing.T) {
	rig := tholetest.New(t)
	w, _, dir := desk(t, rig)
	for i := range 64 {
		w.ok("fs/watch", params("path", dir, "watchId", fmt.Sprint(i)))
	}
	if e := w.refused("fs/watch", params("path", dir, "watchId", "more")); e.Code != jsonrpc.CodeOverloaded {
		t.Error(e)
	}
	w.ok("fs/unwatch", `{"watchId":"0"}`)
	w.ok("fs/watch", params("path", dir, "watchId", "more"))
}

// A search finds what git does not ignore, best first.
func TestSearches(t *testing.T) {
	rig := tholetest.New(t)
	w, _, dir := desk(t, rig)
	w.ok("command/exec", shell(dir, "git init -q . && mkdir -p src/deep cmd build && touch src/main.go src/deep/main_test.go cmd/domain.go build/main.o && echo build/ > .gitignore"))
	names := func(files any) (out []string) {
		for _, f := range files.([]any) {
			out = append(out, f.(map[string]any)["path"].(string))
		}
		return out
	}
	got := w.ok("fuzzyFileSearch", params("query", "main", "roots", []string{dir}))
	if n := names(got["files"]); !slices.Equal(n, []string{"src/deep/main_test.go", "src/main.go", "cmd/domain.go"}) {
		t.Errorf("found %v", n)
	}
	first, _ := json.Marshal(got["files"].([]any)[1])
	if string(first) != `{"file_name":"main.go","indices":[4,5,6,7],"match_type":"file","path":"src/main.go","root":"`+dir+`","score":109}` {
		t.Errorf("a match is %s", first)
	}
	if n := names(w.ok("fuzzyFileSearch", params("query", "", "roots", []string{dir}))["files"]); len(n) != 0 {
		t.Errorf("nothing is %v", n)
	}
	from := w.len()
	w.ok("fuzzyFileSearch/sessionStart", params("sessionId", "s", "roots", []string{dir}))
	at, _ := w.note(from, "fuzzyFileSearch/sessionCompleted")
	w.ok("fuzzyFileSearch/sessionUpdate", `{"sessionId":"s","query":"deep"}`)
	at, m := w.note(at, "fuzzyFileSearch/sessionUpdated")
	if n := names(m.field("files")); !slices.Equal(n, []string{"src/deep", "src/deep/main_test.go"}) || m.field("query") != "deep" {
		t.Errorf("session found %v", n)
	}
	w.note(at, "fuzzyFileSearch/sessionCompleted")
	w.ok("fuzzyFileSearch/sessionStop", `{"sessionId":"s"}`)
	if e := w.refused("fuzzyFileSearch/sessionUpdate", `{"sessionId":"s","query":"x"}`); e.Message != "fuzzy file search session not found: s" {
		t.Error(e)
	}
	if e := w.refused("fuzzyFileSearch", `{"query":"passwd","roots":["/etc"]}`); code(e) != string(thole.CodeForbidden) {
		t.Error(e)
	}
}

// A path belongs to the thread that the client has open. What another user, nobody any
// more, or more than one thread has is refused.
func TestWhoseFilesTheyAre(t *testing.T) {
	rig := tholetest.New(t)
	w, thread, dir := desk(t, rig)
	write(t, filepath.Join(dir, "a"), "1")
	read := params("path", filepath.Join(dir, "a"))
	w.ok("fs/readFile", read)
	other := join(t, rig, full) // sees the thread, and has not opened it
	other.ok("fs/readFile", read)
	stranger := connect(t, rig.StreamOf(thole.Actor{User: "stranger", Via: "test"}))
	stranger.ok("initialize", `{"clientInfo":{"name":"test","version":"1"},"capabilities":`+full+`}`)
	if e := stranger.refused("fs/readFile", read); code(e) != string(thole.CodeForbidden) {
		t.Errorf("a stranger: %v", e)
	}
	if e := stranger.refused("fs/readFile", params("path", filepath.Join(dir, "a"), "threadId", thread)); code(e) != string(thole.CodeNotFound) {
		t.Errorf("a stranger who knows the thread: %v", e)
	}
	plain := join(t, rig, `{}`)
	if e := plain.refused("fs/readFile", params("path", filepath.Join(dir, "a"), "threadId", thread)); !strings.Contains(e.Message, "extension") {
		t.Errorf("without the extension: %v", e)
	}
	// Workspaces of their own have one path.
	one, two := w.thread(`{}`), w.thread(`{}`)
	for _, method := range []string{"fs/remove", "fs/createDirectory"} {
		if e := w.refused(method, `{"path":"/workspace/x"}`); code(e) != string(thole.CodeConflict) {
			t.Errorf("%s in one of two: %v", method, e)
		}
	}
	if e := other.refused("fs/readFile", `{"path":"/workspace/x"}`); code(e) != string(thole.CodeConflict) {
		t.Errorf("of threads that are not open here: %v", e)
	}
	w.ok("thread/unsubscribe", params("threadId", one))
	w.ok("thread/archive", params("threadId", two))
	if e := w.refused("fs/remove", params("path", "/workspace/x", "threadId", two)); code(e) != string(thole.CodeConflict) {
		t.Errorf("of an archived thread: %v", e)
	}
	w.ok("thread/delete", params("threadId", thread))
	if e := w.refused("fs/readFile", read); code(e) != string(thole.CodeForbidden) && code(e) != string(thole.CodeNotFound) {
		t.Errorf("of a deleted thread: %v", e)
	}
	if e := w.refused("command/exec", shell(dir, "true")); code(e) != string(thole.CodeForbidden) && code(e) != string(thole.CodeNotFound) {
		t.Errorf("in a deleted thread: %v", e)
	}
}

// An agent that does not report what it left running ends the TUI no more than one that
// left nothing.
func TestBackgroundTerminals(t *testing.T) {
	rig := tholetest.New(t)
	w, thread, _ := desk(t, rig)
	if got := w.ok("thread/backgroundTerminals/list", params("threadId", thread)); fmt.Sprint(got) != "map[data:[] nextCursor:<nil>]" {
		t.Errorf("list %v", got)
	}
	w.turn(thread, "sim: say hello")
	w.note(0, "turn/completed")
	from := w.len()
	w.ok("thread/backgroundTerminals/clean", params("threadId", thread))
	w.note(from, "warning")
	if got := w.ok("thread/backgroundTerminals/terminate", params("threadId", thread, "processId", "7")); got["terminated"] != false {
		t.Errorf("ended %v", got)
	}
	if e := w.refused("thread/backgroundTerminals/terminate", params("threadId", thread, "processId", "x")); !strings.HasPrefix(e.Message, "invalid background terminal process id") {
		t.Error(e)
	}
}
