// Package system is the composition root: the one place that knows every
// adapter and builds the program's graph from configuration. It is linear and
// dull on purpose. Only internal/cli imports it.
package system

import (
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/testprovider"
)

// Providers is every provider this program has.
func Providers() []provider.Provider {
	return []provider.Provider{testprovider.New()}
}
