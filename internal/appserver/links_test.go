package appserver_test

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/tholetest"
)

// TestChangesOfFilesAreLinks: who changes a file by the contract is named with what was there
// and what is there now, a change that fails is a second link, and one that is refused, or is
// of a thread that is not theirs to see, is a link too; so is a terminal, and a command is not.
func TestChangesOfFilesAreLinks(t *testing.T) {
	kit := tholetest.New(t, tholetest.People())
	w, id, dir := desk(t, kit)
	at := func(name string) string { return filepath.Join(dir, name) }
	w.ok("fs/writeFile", params("path", at("a"), "dataBase64", b64("one")))
	w.ok("fs/writeFile", params("path", at("a"), "dataBase64", b64("two")))
	w.ok("fs/copy", params("sourcePath", at("a"), "destinationPath", at("b")))
	w.ok("fs/createDirectory", params("path", at("d")))
	w.ok("fs/remove", params("path", at("a")))
	w.refused("fs/writeFile", params("path", at("none/x"), "dataBase64", b64("one")))
	w.refused("fs/writeFile", params("path", "/etc/passwd", "dataBase64", b64("one"), "threadId", id))
	w.ok("command/exec", shell(dir, "true"))
	w.ok("command/exec", shell(dir, "true", "tty", true, "processId", "p"))

	u, _, err := kit.People.Add(t.Context(), thole.LocalActor, identity.NewUser{Login: "stranger", Kind: identity.Service})
	if err != nil {
		t.Fatal(err)
	}
	s := connect(t, kit.StreamOf(thole.Actor{User: u.ID, Via: "token"}))
	s.ok("initialize", `{"clientInfo":{"name":"test","version":"1"},"capabilities":`+full+`}`)
	s.refused("fs/readFile", ofThread(id, `"path":"`+at("b")+`"`))

	sum := func(text string) string {
		h := sha256.Sum256([]byte(text))
		return hex.EncodeToString(h[:])
	}
	links, err := kit.Trail.Links(t.Context(), 0, 500)
	if err != nil {
		t.Fatal(err)
	}
	want := []struct{ who, what, before, after string }{
		{"me", "file.write allowed", "", sum("one")},
		{"me", "file.write allowed", sum("one"), sum("two")},
		{"me", "file.copy allowed", "", at("a")},
		{"me", "file.mkdir allowed", "", at("d")},
		{"me", "file.remove allowed", sum("two"), at("a")},
		{"me", "file.write allowed", "", at("none/x")},
		{"me", "file.write failed", "", at("none/x")},
		{"me", "contract.request denied", "", ""},
		{"me", "terminal.open allowed", "", `"sh"`},
		{"stranger", "thread.browse_files denied", "", ""},
	}
	for _, l := range links {
		what := l.Action + " " + string(l.Outcome)
		if !strings.HasPrefix(l.Action, "file.") && l.Outcome == audit.Allowed && !strings.HasPrefix(l.Action, "terminal.") || l.Action == "file.save" {
			continue
		}
		who := map[string]string{string(thole.LocalUser): "me", string(u.ID): "stranger"}[l.Actor]
		if len(want) == 0 {
			t.Fatalf("one more: %+v", l)
		}
		next := want[0]
		if want = want[1:]; next.who != who || next.what != what || !strings.Contains(l.Before, next.before) || (next.before == "") != (l.Before == "") || !strings.Contains(l.After, next.after) {
			t.Errorf("want %+v, got %s: %+v", next, who, l)
		}
		if l.Kind == "thread" && (l.ID != id || l.Owner != thole.LocalUser) {
			t.Errorf("%+v", l)
		}
	}
	if len(want) > 0 {
		t.Errorf("without %+v", want)
	}
}
