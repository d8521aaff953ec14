//go:build linux

package exec_test

import (
	"encoding/json"
	"fmt"
	"strings"

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
	{"the real server's helper for restricted file calls does not start", func(request string, _, real outcome) bool {
		return strings.Contains(request, `"sandbox"`) && strings.HasPrefix(real.Text, "fs sandbox helper failed")
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
