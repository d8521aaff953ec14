//go:build linux

package exec_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"sort"
	"strings"
	"testing"

	"github.com/tholehq/thole/protocol/exec"
)

// httpSite answers with what was asked.
func httpSite(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/there?from=moved", http.StatusFound)
			return
		}
		if r.URL.Path == "/away" { // to another origin
			http.Redirect(w, r, "http://localhost:"+r.Host[strings.LastIndex(r.Host, ":")+1:]+"/there", http.StatusTemporaryRedirect)
			return
		}
		w.Header()["Date"] = nil
		fmt.Fprintf(w, "%s %s %q %q %q", r.Method, r.URL.RequestURI(), r.Header.Values("X-One"), r.Header.Get("Content-Length"), r.Referer())
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// pick returns one of several.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// randomCase makes the requests of one case. Paths stay below the side's directory.
func randomCase(r *rand.Rand, n int) []string {
	switch r.IntN(10) {
	case 0:
		return []string{randomEnvelope(r)}
	case 1, 2, 3: // parameters with something wrong
		method, params := randomRequest(r, n, 0)
		for range 1 + r.IntN(2) {
			mutate(r, params)
		}
		return []string{message0(method, params)}
	}
	if r.IntN(6) == 0 {
		return []string{randomProcess(r, n)}
	}
	var all []string
	for i := range 1 + r.IntN(4) {
		method, params := randomRequest(r, n, i)
		if r.IntN(4) == 0 && sandboxed(n) && (params["path"] != nil || method == exec.MethodProcessStart) {
			params["sandbox"] = randomProfile(r)
		}
		all = append(all, message0(method, params))
	}
	return all
}

func message0(method string, params any) string {
	raw, _ := json.Marshal(map[string]any{"id": 7, "method": method, "params": params})
	return string(raw)
}

// sandboxed cases are the fixed ones and those of the long run: the real helper has more ways to
// differ than a short run that is another each time should meet first.
func sandboxed(n int) bool { return n < 1<<20 || os.Getenv("THOLE_SOAK") != "" }

// randomProfile restricts files. Everything can be read: the real server starts a program of
// its own in the sandbox, wherever that lies.
func randomProfile(r *rand.Rand) any {
	entry := func(path, access string) any {
		return map[string]any{"path": map[string]any{"type": "path", "path": "file://@DIR@/d" + path}, "access": access}
	}
	entries := []any{map[string]any{"path": map[string]any{"type": "special", "value": map[string]any{"kind": "root"}}, "access": "read"}, entry("", pick(r, "read", "write", "write"))}
	for range r.IntN(3) {
		directory := pick(r, "/sub", "/sub/deep", "/.hidden")
		entries = append(entries, pick(r, entry(directory, "read"), entry(directory, "write"), entry(directory, "deny"), entry(pick(r, "/sub/b", "/a", "/empty"), pick(r, "read", "deny"))))
	}
	return map[string]any{"permissions": map[string]any{"type": "managed", "file_system": map[string]any{"type": "restricted", "entries": entries}, "network": pick(r, "restricted", "enabled")},
		"windowsSandboxLevel": "disabled", "windowsSandboxPrivateDesktop": false, "useLegacyLandlock": false}
}

// randomProcess starts a program and talks to it.
func randomProcess(r *rand.Rand, n int) string {
	id := fmt.Sprintf("q%d", n)
	start := func(script string, more ...any) string {
		p := map[string]any{"processId": id, "argv": []any{"/bin/sh", "-c", script}, "cwd": "file://@DIR@/d", "tty": false, "env": map[string]any{"PATH": "/usr/bin:/bin"}}
		for i := 0; i < len(more); i += 2 {
			p[more[i].(string)] = more[i+1]
		}
		return message0(exec.MethodProcessStart, p)
	}
	call := func(method string, more ...any) string {
		p := map[string]any{"processId": id}
		for i := 0; i < len(more); i += 2 {
			p[more[i].(string)] = more[i+1]
		}
		return message0(method, p)
	}
	write := func(text, id string) string {
		return call(exec.MethodProcessWrite, "chunk", base64.StdEncoding.EncodeToString([]byte(text)), "writeId", id)
	}
	text := pick(r, "one\n", "two words\n", "ü\n", "\x00\n")
	read := "read x; echo got:$x; exit " + pick(r, "0", "4")
	ending := pick(r, exec.MethodProcessTerminate, exec.MethodProcessSignal)
	switch r.IntN(7) {
	case 0:
		return start(read, "pipeStdin", true) + thenSend + write(text, "w")
	case 1: // the second of an id is not written
		return start("read x; read y; echo $x:$y", "pipeStdin", true) + thenSend + write(text, "w") + thenSend + write("never\n", "w") + thenSend + write("last\n", "v")
	case 2: // no standard input
		return start("read x && exit 5; exec sleep 60", "pipeStdin", false) + thenSend + write(text, "w") + thenSend + call(ending, "signal", "interrupt")
	case 3:
		return start(read, "tty", true) + thenSend + write(text, "w")
	case 4:
		return start("exec sleep 60", "tty", r.IntN(3) == 0, "pipeStdin", r.IntN(2) == 0) + thenSend + call(ending, "signal", "interrupt")
	case 5: // what is retained, and writes after the end
		return start("echo out; exit 3") + afterEnd + call(exec.MethodProcessRead, "afterSeq", pick[any](r, nil, 0, 100), "maxBytes", pick[any](r, nil, 0, 3, 1000), "waitMs", pick[any](r, nil, 0, 5))
	}
	return start("true", "pipeStdin", r.IntN(2) == 0) + afterEnd + call(pick(r, exec.MethodProcessTerminate, exec.MethodProcessSignal), "signal", "interrupt") + thenSend + start("echo again")
}

func randomPath(r *rand.Rand) string {
	return "file://@DIR@/d/" + pick(r, "a", "sub/b", "sub", "empty", "link", "dirlink", "dirlink/b", "dangling", "missing", "missing/x", "a/x", "sub/deep", "new",
		"sub/new", ".hidden", "sub/../a", "./a", "a/", "%61", "s%20p", "sub//b", "")
}

// randomRequest is one that may succeed, the i-th of case n.
func randomRequest(r *rand.Rand, n, i int) (string, map[string]any) {
	flag := func() bool { return r.IntN(2) == 0 }
	p := map[string]any{"path": randomPath(r)}
	follow := func() {
		if r.IntN(3) == 0 {
			p["followSymlinks"] = flag()
		}
	}
	switch r.IntN(13) {
	case 0:
		follow()
		return exec.MethodReadFile, p
	case 1:
		follow()
		p["dataBase64"] = pick(r, "", "bmV3", "bmV3Cg==", "*", "bmV3Cg", "bm V3", "bm\nV3")
		return exec.MethodWriteFile, p
	case 2:
		follow()
		if flag() {
			p["recursive"] = flag()
		}
		return exec.MethodCreateDirectory, p
	case 3:
		follow()
		return exec.MethodGetMetadata, p
	case 4:
		return pick(r, exec.MethodCanonicalize, exec.MethodReadDirectory), p
	case 5:
		p["options"] = map[string]any{"maxDepth": r.IntN(4), "maxDirectories": 1 + r.IntN(9), "maxEntries": 50, "followDirectorySymlinks": flag(), "pruneHiddenDirectories": flag()}
		return exec.MethodWalk, p
	case 6:
		follow()
		for _, k := range []string{"recursive", "force"} {
			if flag() {
				p[k] = flag()
			}
		}
		return exec.MethodRemove, p
	case 7:
		return exec.MethodCopy, map[string]any{"sourcePath": randomPath(r), "destinationPath": randomPath(r), "recursive": flag()}
	case 8:
		p["handleId"] = pick(r, fmt.Sprint("h", n), fmt.Sprint("g", n), "", strings.Repeat("x", 33))
		if flag() {
			p["mode"] = pick(r, "read", "replace", "append")
		}
		return exec.MethodOpen, p
	case 9:
		return pick(r, exec.MethodReadBlock, exec.MethodClose), map[string]any{"handleId": pick(r, fmt.Sprint("h", n), fmt.Sprint("g", n), "none"), "offset": r.IntN(8), "len": r.IntN(20)}
	case 10:
		headers := []any{}
		for range r.IntN(3) {
			headers = append(headers, map[string]any{"name": pick(r, "x-one", "X-ONE", "bad name", "x-two"), "value": pick(r, "v", "", "a b")})
		}
		return exec.MethodHTTPRequest, map[string]any{"method": pick(r, "GET", "POST", "PUT", "X Y", "OPTIONS"), "url": pick(r, "@SITE@/a?b=c", "@SITE@/moved", "@SITE@/away?secret=1", "@SITE@/%20x", "ftp://h/", "no url", "@SITE@"),
			"requestId": "r", "headers": headers, "redirectPolicy": pick(r, "follow", "stop"), "timeoutMs": 15000, "streamResponse": r.IntN(3) == 0}
	case 11:
		return pick(r, exec.MethodProcessRead, exec.MethodProcessTerminate, exec.MethodProcessSignal, exec.MethodProcessWrite),
			map[string]any{"processId": "unknown", "signal": "interrupt", "chunk": "eA==", "writeId": "w"}
	}
	script := pick(r, "echo out", "echo err >&2; exit 3", "pwd", "cat a sub/b; echo x > new", "kill -9 $$", "exit 255", "printf '%s' \"$A\"", "echo ${0}", "echo äö; exit 1", "ls")
	p = map[string]any{"processId": fmt.Sprintf("p%d-%d", n, i), "argv": []any{"/bin/sh", "-c", script}, "cwd": "file://@DIR@/d" + pick(r, "", "/sub", "/"), "tty": r.IntN(6) == 0,
		"env": map[string]any{"PATH": "/usr/bin:/bin", "A": pick(r, "", "b", "ü")}}
	switch r.IntN(6) {
	case 0:
		p["argv"] = []any{pick(r, "true", "false", "no-such-program", "/bin/echo", "./a", ""), "x"}
	case 1:
		p["envPolicy"] = map[string]any{"inherit": pick(r, "none", "core"), "ignoreDefaultExcludes": flag(), "exclude": []any{}, "set": map[string]any{"A": "set"}, "includeOnly": []any{}}
	case 2:
		p["arg0"] = pick[any](r, nil, "name")
	}
	return exec.MethodProcessStart, p
}

// mutate spoils one member somewhere.
func mutate(r *rand.Rand, object map[string]any) {
	names := make([]string, 0, len(object))
	for k := range object {
		names = append(names, k)
	}
	if len(names) == 0 {
		return
	}
	sort.Strings(names)
	name := pick(r, names...)
	switch v := object[name].(type) {
	case map[string]any:
		if r.IntN(2) == 0 {
			mutate(r, v)
			return
		}
	case []any:
		if len(v) > 0 && r.IntN(2) == 0 {
			if m, ok := v[0].(map[string]any); ok {
				mutate(r, m)
			} else {
				v[r.IntN(len(v))] = pick[any](r, nil, 1, true, map[string]any{})
			}
			return
		}
	}
	switch r.IntN(5) {
	case 0:
		delete(object, name)
	case 1:
		object[name] = nil
	case 2:
		object[name] = pick[any](r, 1, -1, 1.5, true, "word", []any{}, map[string]any{})
	case 3:
		object[strings.ToUpper(name)] = pick[any](r, nil, 1, object[name])
	case 4:
		object["other"] = map[string]any{"x": nil}
	}
}

// randomEnvelope is a message that may be none.
func randomEnvelope(r *rand.Rand) string {
	id := pick(r, `7`, `"seven"`, `null`, `1.5`, `-1`, `9223372036854775807`, `9223372036854775808`, `{}`, `true`, `""`, `"\ud800"`, `"\ud83d\ude00"`, `7,"id":8`, `7,"ID":8`)
	method := pick(r, `"environment/status"`, `"no/such"`, `""`, `null`, `1`, `"environment/\u0073tatus"`, `"\udc00"`, `"initialize"`)
	params := pick(r, ``, `,"params":null`, `,"params":{}`, `,"params":[]`, `,"params":1`, `,"params":{"a":"\ud800"}`, `,"params":{"a":1,"\u0061":2}`, `,"params":{"a":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)+`}`)
	return pick(r, "", " ", "\n") + `{"id":` + id + `,"method":` + method + params + pick(r, `}`, `}`, `}`, `}`, `,"jsonrpc":"2.0"}`, `,"x":null}`, `,}`, ``, `}}`, `} `)
}
