//go:build linux

package exec_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/protocol/exec"
)

// listedDifference is one that docs/protocol/exec-server.md lists.
type listedDifference struct {
	why string
	is  func(request string, ours, real outcome) bool
}

var listedDifferences = []listedDifference{
	{"members whose names differ only in case are refused", func(request string, ours, real outcome) bool {
		var m struct{ Params any }
		_ = json.Unmarshal([]byte(request), &m)
		return ours.Code == exec.CodeInvalidParams && real.Code != ours.Code && foldedTwice(m.Params)
	}},
	{"a request without a body has a length of 0", func(request string, ours, real outcome) bool {
		a, aok := ours.Result.([]any)
		b, bok := real.Result.([]any)
		return strings.Contains(request, exec.MethodHTTPRequest) && aok && bok && a[0] == b[0] &&
			strings.Replace(fmt.Sprint(a[2]), ` "0" `, ` "" `, 1) == fmt.Sprint(b[2])
	}},
	{"the real server's helper cannot deny a missing path below a read-only directory", func(request string, _, real outcome) bool {
		return strings.Contains(request, `"sandbox"`) && strings.HasPrefix(real.Text, "fs sandbox helper failed") && strings.Contains(real.Text, "bwrap: Can't ") && strings.HasSuffix(strings.TrimSpace(real.Text), ": Read-only file system")
	}},
	{"what an entry denies is not described, and every call there is refused for that", func(request string, ours, real outcome) bool {
		seen := strings.Contains(request, exec.MethodGetMetadata) || strings.Contains(request, exec.MethodCanonicalize) || strings.Contains(request, exec.MethodCreateDirectory) ||
			strings.Contains(request, exec.MethodWalk) && strings.Contains(fmt.Sprint(real.Result), "entries:[]")
		described := real.Code == 0 && seen && ours.Tree == real.Tree
		stopped := (real.Code == exec.CodeInternal || real.Code == exec.CodeNotFound) && ours.Tree == real.Tree
		return strings.Contains(request, `"sandbox"`) && ours.Text == "Permission denied (os error 13)" && (described || stopped)
	}},
	{"a directory that an entry names is a mount of the real server's helper, which cannot be removed", func(request string, ours, real outcome) bool {
		return strings.Contains(request, exec.MethodRemove) && strings.Contains(request, `"sandbox"`) && real.Text == "Resource busy (os error 16)" && ours.Code == 0
	}},
	{"a directory of which something may not be removed: what went before is chance", func(request string, ours, real outcome) bool {
		return strings.Contains(request, exec.MethodRemove) && strings.Contains(request, `"sandbox"`) && ours.Code != 0 && real.Code == exec.CodeInternal && ours.Tree != real.Tree
	}},
	{"a program that is not there, in a sandbox: the real server's helper crashes", func(request string, ours, real outcome) bool {
		missing := ours.Code == exec.CodeInternal || ours.Exit != "0" && strings.Contains(ours.Output, ": bwrap: ")
		return strings.Contains(request, `"sandbox"`) && missing && strings.HasPrefix(real.Exit, "101") && strings.Contains(real.Output, "Failed to execvp")
	}},
	{"a working directory that is missing and that the profile restricts is an empty one", func(request string, ours, real outcome) bool {
		return strings.Contains(request, exec.MethodProcessStart) && strings.Contains(request, `"sandbox"`) && strings.Contains(request, `"cwd":"file://@DIR@/d/sub"`) &&
			!strings.Contains(real.Tree, "/d/sub d") && ours.Exit != "" && real.Text == "No such file or directory (os error 2)"
	}},
	{"a working directory that the profile denies is not entered", func(request string, ours, real outcome) bool {
		return strings.Contains(request, `"sandbox"`) && strings.Contains(request, `"deny"`) && strings.Contains(ours.Output, ": bwrap: Can't chdir to @DIR@/d") && ours.Exit == "1 denied" && real.Code == 0
	}},
	{"the real server's helper sees what holds the place of protected directories, and links to what an entry denies", func(request string, ours, real outcome) bool {
		shown := strings.Contains(request, exec.MethodReadDirectory) || strings.Contains(request, exec.MethodWalk)
		names := sandbox.Protected
		if strings.Contains(request, `"deny"`) {
			names = append(slices.Clone(names), "link", "dirlink")
		}
		without := withoutNames(real.Result, names)
		all, _ := real.Result.(map[string]any)
		cut := all["truncated"] == true && !reflect.DeepEqual(without, real.Result) // they count
		return strings.Contains(request, `"sandbox"`) && shown && ours.Code == 0 && real.Code == 0 && (cut || reflect.DeepEqual(withoutNames(ours.Result, names), without))
	}},
	{"after a redirect (302) every method but HEAD is GET", func(request string, ours, real outcome) bool {
		var m struct {
			Params struct{ Method string }
		}
		_ = json.Unmarshal([]byte(request), &m)
		other := m.Params.Method != "GET" && m.Params.Method != "HEAD" && m.Params.Method != "POST"
		return strings.Contains(request, exec.MethodHTTPRequest) && other && strings.Contains(request, "/moved") && ours.Code == 0 && real.Code == 0
	}},
	{"a terminal without its working directory is refused", func(request string, ours, real outcome) bool {
		return strings.Contains(request, exec.MethodProcessStart) && strings.Contains(request, `"tty":true`) && ours.Code == exec.CodeInternal && real.Code == 0
	}},
}

// withoutNames takes some names out of what fs/walk found, lists of paths, and
// fs/readDirectory, here by name.
func withoutNames(result any, names []string) any {
	m, ok := result.(map[string]any)
	if !ok {
		return result
	}
	m = maps.Clone(m)
	for key, found := range m {
		switch found := found.(type) {
		case []any:
			m[key] = slices.DeleteFunc(slices.Clone(found), func(e any) bool {
				at, _ := e.(map[string]any)["path"].(string)
				return slices.ContainsFunc(strings.Split(at, "/"), func(name string) bool { return slices.Contains(names, name) })
			})
		case map[string]any:
			found = maps.Clone(found)
			maps.DeleteFunc(found, func(name string, _ any) bool { return slices.Contains(names, name) })
			m[key] = found
		}
	}
	return m
}

// foldedTwice says whether an object has two names that differ only in case.
func foldedTwice(v any) bool {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if foldedTwice(e) {
				return true
			}
		}
	case map[string]any:
		seen := map[string]bool{}
		for k, e := range v {
			if seen[strings.ToLower(k)] || foldedTwice(e) {
				return true
			}
			seen[strings.ToLower(k)] = true
		}
	}
	return false
}
