package main

import (
	"fmt"
	"strings"

	"github.com/tholehq/thole/internal/config"
)

func configuration(string) string {
	var b strings.Builder
	b.WriteString("# Configuration keys\n\n" + written("internal/config/config.go and meaning.go"))
	b.WriteString("Where keys are written and which layer counts: [config.md](../operate/config.md). The variable of a key is `THOLE_` and its name in capitals: `http.listen` is `THOLE_HTTP_LISTEN`.\n\n")
	b.WriteString("| key | default | meaning |\n|---|---|---|\n")
	c := config.Default()
	for _, e := range c.Entries() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.Key, cell(e.Value), cell(config.Meaning(e.Key)))
	}
	return b.String()
}
