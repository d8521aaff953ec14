package arch

import (
	"strings"
	"testing"
)

// edge forbids imports. Rules with reach look through everything a package
// depends on, the others at what it names itself.
type edge struct {
	from   []string // packages the rule is for
	except []string
	to     []string // packages they must not import
	reach  bool
	reason string
}

var (
	kernels = []string{
		"internal/jsonrpc", "internal/strictjson", "internal/serial", "internal/service",
		"internal/atomicfile", "internal/peercred", "internal/plain", "internal/procid", "internal/metrics", "internal/measure", "internal/backoff", "internal/egress", "internal/toolchain",
	}
	machines = []string{"internal/thread", "internal/queue", "internal/delivery", "internal/artifact"}
	ports    = []string{
		"internal/process", "internal/provider", "internal/executor", "internal/workspace", "internal/objects", "internal/channel",
	}
	adapters = []string{
		"internal/provider/codex", "internal/provider/claude", "internal/provider/opencode",
		"internal/executor/local", "internal/executor/inproc", "internal/objects/s3", "internal/objects/dir",
		"internal/channel/turnstart", "internal/channel/ownthread",
	}
	servers = []string{
		"internal/dispatch", "internal/appserver", "internal/execserver", "internal/executord", "internal/daemon", "internal/platform/...",
	}
	top = []string{"internal/system", "internal/cli", "cmd/..."}
)

func edges() []edge {
	list := func(groups ...[]string) []string {
		var all []string
		for _, g := range groups {
			all = append(all, g...)
		}
		return all
	}
	return []edge{
		{from: kernels, to: list([]string{""}, machines, ports, adapters, servers, top, []string{"internal/store/...", "internal/transport/...", "internal/config"}), reach: true,
			reason: "a kernel knows none of our nouns, so that it can be read and tested alone"},
		{from: machines, to: list(adapters, servers, top, []string{"internal/store/...", "internal/transport/...", "internal/config"}), reach: true,
			reason: "a machine owns its transitions and its Store interface; the store and whatever drives it depend on it"},
		{from: ports, to: list(adapters, servers, top, []string{"internal/store/..."}), reach: true,
			reason: "a port is a small interface; what implements or drives it depends on it"},
		{from: []string{"internal/thread"}, to: []string{"internal/delivery/..."}, reach: true,
			reason: "a thread does not know that background results exist"},
		{from: []string{"internal/delivery/..."}, to: []string{"internal/thread/..."}, reach: true,
			reason: "delivery reaches a thread only through a channel, as any other client of the contract"},
		{from: []string{"internal/appserver/..."}, to: []string{"internal/store/..."}, reach: true,
			reason: "the contract speaks to the thread service; a second way to the truth would pass its rules by"},
		{from: []string{"internal/execserver/..."}, to: []string{"internal/thread/...", "internal/delivery/...", "internal/platform/..."}, reach: true,
			reason: "the exec server runs on any machine and holds processes and files, nothing of ours"},
		{from: []string{"client/..."}, to: list(machines, ports, adapters, servers, top, []string{"internal/store/...", "internal/platform/..."}), reach: true,
			reason: "clients are public: they carry the protocol and the kernels, not the server"},
		{from: []string{"internal/transport/..."}, to: list(machines, ports, adapters, servers, top, []string{"internal/store/..."}), reach: true,
			reason: "a transport moves messages and knows nothing of what they mean"},
		{from: []string{"internal/modelsim/..."}, to: []string{"", "internal/...", "client/...", "protocol/..."}, reach: true,
			reason: "the scripted model stands outside thole, as the real one does"},
		{from: []string{"", "cmd/...", "client/...", "protocol/...", "internal/..."}, except: []string{"internal/system", "internal/doctor"}, to: adapters,
			reason: "only system builds the graph, and the doctor looks at what it would build; everything else works with the port"},
		{from: []string{"", "client/...", "protocol/...", "internal/..."}, except: []string{"internal/cli", "internal/system"}, to: []string{"internal/system"},
			reason: "system is the composition and has nothing to offer but the whole"},
		{from: []string{"", "client/...", "protocol/...", "internal/..."}, except: []string{"internal/cli"}, to: []string{"internal/cli", "cmd/..."},
			reason: "the command line is the top"},
		{from: []string{"", "cmd/...", "client/...", "protocol/...", "internal/..."}, to: []string{"internal/testkit/...", "test/..."}, reach: true,
			reason: "the binary carries nothing that exists for tests"},
	}
}

func TestImportDirection(t *testing.T) {
	all := packages(t)
	for _, e := range edges() {
		for _, p := range all {
			if !matchesAny(p.name, e.from) || matchesAny(p.name, e.except) || forTests(p.name) {
				continue
			}
			seen := p.imports
			if e.reach {
				seen = p.deps
			}
			for _, to := range ours(seen) {
				if to != p.name && matchesAny(to, e.to) && !partOf(p.name, to) {
					t.Errorf("%s must not import %s: %s", show(p.name), show(to), e.reason)
				}
			}
		}
	}
}

// partOf lets a package use what lies below it: internal/executord owns
// internal/executord/eventlog. An adapter below its port is not such a part.
func partOf(name, to string) bool {
	return name != "" && strings.HasPrefix(to, name+"/") && !matchesAny(to, adapters) ||
		to != "" && strings.HasPrefix(name, to+"/")
}

func show(name string) string {
	if name == "" {
		return "the root package"
	}
	return name
}

func TestRootAndProtocolStandAlone(t *testing.T) {
	for _, p := range packages(t) {
		if p.name != "" && !matches(p.name, "protocol/...") {
			continue
		}
		for _, dep := range p.deps {
			inside := strings.HasPrefix(dep, module+"/protocol")
			protobuf := p.name == "protocol/relay" && strings.HasPrefix(dep, "google.golang.org/protobuf")
			if !standard(dep) && !inside && !protobuf {
				t.Errorf("%s depends on %s: whoever imports our nouns or wire types gets nothing else with them", show(p.name), dep)
			}
		}
	}
}

func TestTheRulesNameRealShapes(t *testing.T) {
	for _, tc := range []struct {
		name, pattern string
		want          bool
	}{
		{"internal/store", "internal/store/...", true},
		{"internal/store/storetest", "internal/store/...", true},
		{"internal/storeroom", "internal/store/...", false},
		{"internal/store/x", "internal/store", false},
		{"", "", true},
		{"cmd/thole", "", false},
	} {
		if matches(tc.name, tc.pattern) != tc.want {
			t.Errorf("matches(%q, %q) is not %v", tc.name, tc.pattern, tc.want)
		}
	}
	for _, e := range edges() {
		if e.reason == "" || len(e.from) == 0 || len(e.to) == 0 {
			t.Errorf("a rule without a reason, a source or a target: %+v", e)
		}
	}
}
