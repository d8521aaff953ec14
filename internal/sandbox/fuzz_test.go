package sandbox

import (
	"encoding/json"
	"testing"

	"github.com/tholehq/thole/protocol/exec"
)

// FuzzCompile must never turn nonsense into permission: a restricted profile
// gives a path no more than some entry names.
func FuzzCompile(f *testing.F) {
	f.Add([]byte(`{"permissions":{"type":"managed","file_system":{"type":"restricted","entries":[{"path":{"type":"special","value":{"kind":"root"}},"access":"read"}]},"network":"restricted"},"windowsSandboxLevel":"disabled"}`))
	f.Add([]byte(`{"permissions":{"type":"managed","file_system":{"type":"restricted","entries":[{"path":{"type":"path","path":"file:///a/../b"},"access":"write"},{"path":{"type":"glob_pattern","pattern":"**/x"},"access":"none"}]},"network":"enabled"},"cwd":"file:///w","windowsSandboxLevel":"disabled"}`))
	f.Add([]byte(`{"permissions":{"type":"managed"},"windowsSandboxLevel":"disabled"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var s exec.Sandbox
		if json.Unmarshal(raw, &s) != nil {
			t.Skip()
		}
		p, err := Compile(&s, Place{Cwd: "/"})
		if err != nil {
			return
		}
		if s.Permissions.Type == exec.PermissionsManaged && s.Permissions.FileSystem.Type == exec.FSRestricted {
			most := None
			for _, e := range s.Permissions.FileSystem.Entries {
				switch e.Access {
				case exec.AccessRead:
					most = max(most, Read)
				case exec.AccessWrite:
					most = max(most, Write)
				}
			}
			for _, path := range []string{"/", "/etc/passwd", "/b", "/w/x"} {
				if p.Access(path) > most {
					t.Fatalf("%s: %d on %s, the entries give %d at most", raw, p.Access(path), path, most)
				}
			}
		}
	})
}
