// Command members writes the table of what becomes of each member of a request of the
// thread contract: honoured, harmless or refused.
package main

import (
	"fmt"
	"log"
	"os"
	"reflect"
	"sort"
	"strings"

	"github.com/tholehq/thole/internal/appserver"
	"github.com/tholehq/thole/protocol/app"
)

const head = `# Members of requests

<!-- written by scripts/gen/members; edit internal/appserver/members.go instead -->

What becomes of each member of a request of the [thread contract](app-server.md). A member that changes what a request means is honoured or refused, never dropped.

- **honoured**: it does what it does in Codex, or is refused by its value with the reason.
- **harmless**: it is ignored, because it changes nothing here.
- **refused**: a value that asks for something is an error. ` + "`null`, `false`, `\"\"`, `[]` and `{}`" + ` ask for nothing.

Members that Codex does not know either are ignored.

| method | honoured | harmless | refused |
|---|---|---|---|
`

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: members FILE")
	}
	var out strings.Builder
	out.WriteString(head)
	rules := appserver.Rules()
	methods := app.Methods()
	sort.SliceStable(methods, func(i, j int) bool { return methods[i].Name < methods[j].Name })
	for _, m := range methods {
		if m.Direction != app.FromClient {
			continue
		}
		var honoured, harmless, refused []string
		if m.Params != nil {
			honoured = fields(reflect.TypeOf(m.Params))
		}
		names := make([]string, 0, len(rules[m.Name]))
		for name := range rules[m.Name] {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			r := rules[m.Name][name]
			entry := fmt.Sprintf("`%s` (%s)", name, r.Why)
			if r.Refuse {
				refused = append(refused, entry)
			} else {
				harmless = append(harmless, entry)
			}
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", m.Name, strings.Join(honoured, " "), strings.Join(harmless, ", "), strings.Join(refused, ", "))
	}
	if err := os.WriteFile(os.Args[1], []byte(out.String()), 0o644); err != nil {
		log.Fatal(err)
	}
}

// fields are the wire names of a params type.
func fields(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			names = append(names, fields(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, "`"+name+"`")
	}
	sort.Strings(names)
	return names
}
