package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// named are the files outside of internal/provider that may say a provider's name,
// and why. Anybody else reads a member of its row in provider/table.
var named = map[string][]string{
	"Codex terminals, into which results are delivered, are a noun of the product": {
		"internal/attachment/keeper/*.go", "internal/channel/turnstart/*.go", "internal/daemon/sessions.go", "internal/delivery/next.go",
		"internal/daemon/plugins.go", "internal/plugin/plugin.go", "internal/doctor/channel.go", "internal/cli/codex_*.go", "internal/cli/doctor.go", "internal/cli/owner.go", "internal/cli/root.go",
	},
	"the Codex Desktop app is a noun of the product, and runs Codex": {"internal/daemon/desktop.go", "internal/system/desktop.go"},
	"the contract and the exec protocol are Codex's, and so are these words of them": {
		"internal/appserver/lists.go", "internal/cli/app_server.go", "internal/execserver/environment.go", "internal/sandbox/policy.go",
		"internal/relay/noise/noise.go", "protocol/relay/registry.go",
	},
	"the keys that a user writes in the configuration": {"internal/config/config.go", "internal/config/meaning.go"},
	"examples of what a user types":                    {"internal/cli/arrange.go", "internal/cli/examples.go"},
	"a model's name":                                   {"internal/modelsim/offline.go"},
}

var providerName = regexp.MustCompile(`\b(codex|claude|opencode)\b`)

// TestProvidersAreNamedInTheirTable fails on a provider's name in a string of product
// code: a difference between providers is a member of a row or a capability.
func TestProvidersAreNamedInTheirTable(t *testing.T) {
	used := map[string]bool{}
	for _, p := range packages(t) {
		own := groupOf(p.name)
		if len(own) != 1 || own[0].name == "proof" || matchesAny(p.name, []string{"internal/provider", "internal/provider/..."}) {
			continue
		}
		for _, name := range p.files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, filepath.Join(p.dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			allowed := allowedToName(path.Join(p.name, name))
			ast.Inspect(f, func(n ast.Node) bool {
				if _, ok := n.(*ast.ImportSpec); ok {
					return false
				}
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING || !providerName.MatchString(lit.Value) {
					return true
				}
				if allowed == "" {
					t.Errorf("%s says %s: read the provider's row in internal/provider/table, or a capability", fset.Position(lit.Pos()), lit.Value)
				}
				used[allowed] = true
				return true
			})
		}
	}
	for reason, files := range named {
		for _, f := range files {
			if !used[f] {
				t.Errorf("%s need not be allowed to name providers (%s)", f, reason)
			}
		}
	}
}

func allowedToName(file string) string {
	for _, files := range named {
		if i := slices.IndexFunc(files, func(pattern string) bool { ok, _ := path.Match(pattern, file); return ok }); i >= 0 {
			return files[i]
		}
	}
	return ""
}
