package up

import (
	"html"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/test/e2e/home"
)

// Every user of a machine reads its command lines: the login code is on none, neither
// on the browser's nor on thole's own. The file that the browser is given is for
// its user alone, logs in, and goes with the server.
func TestTheCodeIsOnNoCommandLine(t *testing.T) {
	h := home.New(t)
	bin, said := t.TempDir(), filepath.Join(t.TempDir(), "said")
	opener := "#!/bin/sh\nprintf '%s\\n' \"$@\" > " + said + ".new && mv " + said + ".new " + said + "\n"
	if err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte(opener), 0o755); err != nil {
		t.Fatal(err)
	}
	h.Vars = append(h.Vars, "PATH="+bin+":"+os.Getenv("PATH"))
	r := start(t, h, "--no-browser=false")
	var line []byte
	poll.Until(t, "the browser is opened", func() bool {
		var err error
		line, err = os.ReadFile(said)
		return err == nil
	})
	_, code, _ := strings.Cut(r.url, "#code=")
	file := strings.TrimSpace(string(line))
	if code == "" || strings.Contains(file, code) || strings.Contains(file, "code") {
		t.Fatalf("the browser was called with %q, the link is %s", file, r.url)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		t.Fatal(lines, err)
	}
	for _, name := range lines {
		if b, err := os.ReadFile(name); err == nil && strings.Contains(string(b), code) {
			t.Errorf("%s: %q", name, b)
		}
	}
	st, err := os.Stat(file)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", st.Mode(), err)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`0;url=([^"]+)"`).FindStringSubmatch(string(page))
	if link == nil || html.UnescapeString(link[1]) != r.url {
		t.Fatalf("the file is %s", page)
	}
	res := enter(t, http.DefaultClient, r.url)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("the link: %s", res.Status)
	}
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	r.waits()
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file stayed: %v", err)
	}
}
