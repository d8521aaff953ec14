package opencode

import "github.com/tholehq/thole/internal/provider"

// Settings implements provider.Configured. The configuration directory itself lies
// with the login, where no agent writes; this is what else the server obeys or runs.
func (*Provider) Settings() []provider.Setting {
	all := []provider.Setting{{Path: "~/.opencode", Dir: true, Files: installed()}}
	for _, name := range []string{"bin", "node_modules", "packages"} {
		all = append(all, provider.Setting{Path: "~/.cache/opencode/" + name, Dir: true})
	}
	return all
}
