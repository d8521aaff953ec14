package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// group is a layer: its packages, the groups that they may import besides their own,
// and why no other. ARCHITECTURE.md has the same table.
type group struct {
	name     string
	packages []string
	may      []string
	reason   string
}

func below(prefix string, names ...string) []string {
	for i := range names {
		names[i] = prefix + names[i]
	}
	return names
}

var groups = []group{
	{"root", []string{"."}, nil, "whoever imports our nouns gets nothing else with them"},
	{"event", []string{"event", "event/fold", "event/turntime"}, []string{"root"}, "what happened is data, read by everybody"},
	{"wire", []string{"client/appclient", "client/execclient", "internal/daemon/wire", "internal/platform/view", "internal/relay", "protocol/app", "protocol/exec", "protocol/relay"},
		[]string{"root", "event", "kernels"}, "what goes over a wire, and public clients of it, carry nothing of the server"},
	{"kernels", below("internal/", "atomicfile", "backoff", "box", "commandline", "diskspace", "egress", "executord/eventlog", "forge", "fuzzy", "jsonhttp", "jsonrpc", "mcp/mcpclient", "measure", "metrics", "modelsim", "nearest", "peercred", "plain", "process", "procid", "relay/noise", "sandbox/seccomp", "serial", "service", "sqldb", "strictjson", "toolchain", "tracing", "unguarded",
		"transport", "transport/inproc", "transport/stdio", "transport/unix", "transport/ws", "version", "workspace/beneath"),
		[]string{"root"}, "a kernel knows no noun of ours but the errors"},
	{"rights", []string{"internal/authz"}, []string{"root"}, "who may do what is one pure function, asked by everybody"},
	{"machines", below("internal/", "artifact", "attachment", "audit", "budget", "delivery", "identity", "platform/session", "platform/usage", "plugin", "price", "queue", "roster", "thread", "vault"),
		[]string{"root", "event", "kernels", "rights"}, "a machine owns its transitions and its Store interface; the store and whatever drives it depend on it"},
	{"ports", below("internal/", "attachment/keeper", "channel", "channel/message", "channel/turnend", "channel/turnsteer", "executor", "executord/executorclient", "executord/terminal", "executord/wire",
		"git", "inbox", "objects", "provider", "provider/base", "provider/ownconfig", "provider/setup", "provider/snapshot", "provider/table", "sandbox", "sandbox/repository", "source", "workspace", "workspace/manager", "workspace/side", "workspace/unpack"),
		[]string{"root", "event", "wire", "kernels", "rights", "machines"}, "a port is a small interface and the pipelines over it; what implements or drives it depends on it"},
	{"rows", []string{"internal/store"}, []string{"root", "event", "kernels", "rights", "machines", "ports"}, "the store is every machine's Store and serves nobody by itself"},
	{"adapters", below("internal/", "channel/heartbeat", "channel/ownthread", "channel/turnstart", "executor/local", "objects/dir", "objects/late", "objects/s3", "workspace/apart",
		"provider/claude", "provider/codex", "provider/opencode", "provider/testprovider", "source/branch", "source/here", "vault/keyfile", "audit/anchor"),
		[]string{"root", "event", "wire", "kernels", "rights", "machines", "ports"}, "an adapter implements one port and knows no truth"},
	{"servers", below("internal/", "acp", "appserver", "daemon", "daemon/daemonclient", "daemon/executors", "daemon/supervise", "daemon/threads", "delivery/driver", "depot", "dispatch", "execserver", "executord", "gateway", "gateway/calls", "gateway/ledger", "gateway/upstream",
		"executord/terminal/shell", "executord/watchdog", "platform/chat", "platform/guard", "platform/httpapi", "platform/peer", "platform/preview", "platform/shared", "platform/spend", "platform/sso", "platform/transcript", "provider/registry", "source/choice", "upload", "daemon/changes", "shelf", "mcp", "notify", "relay/registry", "threadjob"),
		[]string{"root", "event", "wire", "kernels", "rights", "machines", "ports", "rows"}, "servers hold no durable truth and work with ports, never with an adapter"},
	{"composition", below("internal/", "backup", "config", "doctor", "system"),
		[]string{"root", "event", "wire", "kernels", "rights", "machines", "ports", "rows", "adapters", "servers"}, "the one place that knows every adapter"},
	{"cli", []string{"cmd/thole", "internal/cli", "web"},
		[]string{"root", "event", "wire", "kernels", "rights", "machines", "ports", "rows", "servers", "composition"}, "the command line is the top; it builds nothing but the system"},
	{"proof", []string{"internal/testkit/...", "internal/executor/inproc", "internal/tholetest", "scripts/bom", "scripts/gen/...", "scripts/words", "test/..."}, nil, "what proves may use everything, and nothing uses it"},
}

func groupOf(name string) (found []group) {
	if name == "" {
		name = "."
	}
	if forTests(name) {
		name = "test/" + name
	}
	for _, g := range groups {
		if matchesAny(name, g.packages) {
			found = append(found, g)
		}
	}
	return found
}

// TestEveryPackageIsInOneGroup fails on a package that is in none: say where it
// belongs before it grows roots.
func TestEveryPackageIsInOneGroup(t *testing.T) {
	all, there := packages(t), map[string]bool{".": true}
	for _, p := range all {
		there[p.name] = true
		own := groupOf(p.name)
		if len(own) != 1 {
			t.Errorf("%s is in %d groups: list it in exactly one, here and in ARCHITECTURE.md", show(p.name), len(own))
			continue
		}
		if own[0].name == "proof" {
			continue
		}
		for _, to := range ours(p.imports) {
			for _, g := range groupOf(to) {
				if g.name != own[0].name && !slices.Contains(own[0].may, g.name) {
					t.Errorf("%s (%s) must not import %s (%s): %s", show(p.name), own[0].name, show(to), g.name, own[0].reason)
				}
			}
		}
	}
	for _, g := range groups {
		for _, name := range g.packages {
			if !strings.HasSuffix(name, "/...") && !there[name] {
				t.Errorf("group %s lists %s, which is not there", g.name, name)
			}
		}
	}
}

var quoted = regexp.MustCompile("`([^`]+)`")

// TestTheTableSaysTheSame compares the table of ARCHITECTURE.md with the groups.
func TestTheTableSaysTheSame(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.SplitSeq(string(text), "\n") {
		if cells := strings.Split(line, "|"); len(cells) >= 4 && groupNamed(strings.TrimSpace(cells[1])) {
			rows[strings.TrimSpace(cells[1])] = cells[2]
		}
	}
	for _, g := range groups {
		var listed []string
		for _, m := range quoted.FindAllStringSubmatch(rows[g.name], -1) {
			listed = append(listed, expand(m[1])...)
		}
		want := slices.Clone(g.packages)
		slices.Sort(want)
		slices.Sort(listed)
		if !slices.Equal(listed, want) {
			t.Errorf("ARCHITECTURE.md has in group %s\n%s\nand the test\n%s", g.name, strings.Join(listed, " "), strings.Join(want, " "))
		}
	}
}

func groupNamed(name string) bool {
	return slices.ContainsFunc(groups, func(g group) bool { return g.name == name })
}

// expand writes out one pair of braces.
func expand(s string) (out []string) {
	before, rest, ok := strings.Cut(s, "{")
	if !ok {
		return []string{s}
	}
	inside, after, _ := strings.Cut(rest, "}")
	for part := range strings.SplitSeq(inside, ",") {
		out = append(out, before+part+after)
	}
	return out
}

// TestLinks says what some packages must not link, through whatever they import.
func TestLinks(t *testing.T) {
	only := func(name string) []string {
		for _, g := range groups {
			if g.name == name {
				return g.packages
			}
		}
		t.Fatal(name)
		return nil
	}
	webSocket, pty := "github.com/coder/websocket/...", "github.com/creack/pty"
	for _, rule := range []struct {
		from, to []string
		reason   string
	}{
		{[]string{"internal/thread"}, []string{"internal/process", "internal/provider/...", "os/exec", "net/http", pty, webSocket}, "a thread's rules need no process and no provider"},
		{[]string{"internal/store"}, append([]string{"internal/transport/...", "internal/process", "internal/attachment/keeper", "client/...", "net/http", pty, webSocket}, only("servers")...),
			"the store keeps rows: no transport, no process, no terminal, no server"},
		{[]string{"internal/workspace"}, []string{"net/http", "internal/workspace/manager", "internal/workspace/side"}, "the stored form of files is data; its two ends depend on it"},
		{[]string{"internal/attachment", "internal/sqldb"}, []string{"internal/process", "net/http", pty, webSocket}, "rows are apart from what starts servers"},
		{[]string{"internal/dispatch", "internal/executord/executorclient"}, []string{"internal/executord", "internal/executord/eventlog", "internal/executord/terminal/shell"},
			"who drives an executor links its client, not its server"},
	} {
		for _, p := range packages(t) {
			if !matchesAny(p.name, rule.from) {
				continue
			}
			for _, dep := range p.deps {
				if matchesAny(relative(dep), rule.to) {
					t.Errorf("%s links %s: %s", p.name, relative(dep), rule.reason)
				}
			}
		}
	}
	for _, p := range packages(t) {
		if !matches(p.name, "event/...") && !matches(p.name, "protocol/...") {
			continue
		}
		for _, dep := range p.deps {
			mine, _, _ := strings.Cut(p.name, "/")
			protobuf := p.name == "protocol/relay" && strings.HasPrefix(dep, "google.golang.org/protobuf/")
			if !standard(dep) && !protobuf && dep != module && !strings.HasPrefix(dep, module+"/"+mine) {
				t.Errorf("%s links %s: only the standard library and the root", p.name, dep)
			}
		}
	}
}
