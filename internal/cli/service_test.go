package cli

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const (
	awkwardHome = `/home/a "b" $HOME %h \ <&>/.thole`
	awkwardExe  = `/opt/the tools/thole`
)

// The launchd agent is the golden file, and well-formed with every word of the
// user's kept as it is.
func TestLaunchdPlist(t *testing.T) {
	got := launchdPlist(awkwardExe, awkwardHome, "/usr/bin:/bin")
	want, err := os.ReadFile("testdata/launchd.plist")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("launchd.plist is now:\n%s", got)
	}
	var words []string
	for d := xml.NewDecoder(strings.NewReader(string(got))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			words = append(words, string(text))
		}
	}
	all := strings.Join(words, "|")
	if !strings.Contains(all, "|"+awkwardExe+"|up|--no-browser|--home|"+awkwardHome+"|") {
		t.Errorf("the command line is not in %s", all)
	}
}

// systemd takes the unit, and reads the words of the command line back as they
// were.
func TestSystemdUnit(t *testing.T) {
	dir := t.TempDir()
	exe := filepath.Join(dir, "the tools %n $HOME", "thole")
	if err := os.MkdirAll(filepath.Dir(exe), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(exe, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := string(systemdUnit(exe, awkwardHome, `/usr/bin:/a "b" %h`))
	for _, line := range []string{"Delegate=yes", "DelegateSubgroup=main", "KillMode=process", "StandardOutput=null",
		`Environment="PATH=/usr/bin:/a \"b\" %%h"`, `--home "/home/a \"b\" $$HOME %%h \\ <&>/.thole"`} {
		if !strings.Contains(text, line) {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("systemd-analyze is not installed; scripts/lab install gets it")
		}
		t.Skip("systemd-analyze is not installed")
	}
	// systemd before 254 does not know subgroups and says so; the rest must be right.
	verify := func(text string) (complaints string) {
		path := filepath.Join(dir, unitName)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(analyze, "--user", "--man=no", "--generators=no", "--recursive-errors=one", "verify", path)
		cmd.Env = []string{"HOME=" + dir, "XDG_RUNTIME_DIR=" + dir, "PATH=/usr/bin:/bin"}
		out, err := cmd.CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "'DelegateSubgroup'") {
				err = nil // it ends with 1 for a warning too
			} else {
				complaints += line
			}
		}
		if err != nil {
			complaints += err.Error()
		}
		return complaints
	}
	if found := verify(text); found != "" {
		t.Error(found)
	}
	// The check can fail: a program that is not there, and a word that is no setting.
	if found := verify(strings.Replace(text, "/thole\"", "/gone\"", 1)); !strings.Contains(found, "/gone") {
		t.Errorf("a missing program was taken: %q", found)
	}
	if found := verify(strings.Replace(text, "Delegate=yes", "Delgate=yes", 1)); !strings.Contains(found, "Delgate") {
		t.Errorf("an unknown setting was taken: %q", found)
	}
}

// Install writes, says what to type and starts nothing; --print writes nothing;
// status reports drift; uninstall takes away what enabling made too. A file that
// thole did not write stays.
func TestService(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the paths are those of systemd")
	}
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("THOLE_HOME", filepath.Join(dir, ".thole"))
	file := filepath.Join(dir, ".config/systemd/user/thole.service")
	link := filepath.Join(filepath.Dir(file), "default.target.wants", "thole.service")

	printed, _, code := run("service", "install", "--print")
	if code != 0 || !strings.HasPrefix(printed, "# "+unitMark) {
		t.Fatalf("--print: exit %d: %s", code, printed)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Fatalf("--print wrote %v", entries)
	}
	if _, errs, code := run("service", "status"); code != 3 || !strings.Contains(errs, "thole service install") {
		t.Errorf("status of nothing: exit %d: %s", code, errs)
	}
	if _, errs, code := run("service", "uninstall"); code != 3 {
		t.Errorf("uninstall of nothing: exit %d: %s", code, errs)
	}
	out, errs, code := run("service", "install")
	text, err := os.ReadFile(file)
	if code != 0 || err != nil || string(text) != printed || !strings.Contains(out, "systemctl --user enable --now thole.service") {
		t.Fatalf("install: exit %d, %v: %s%s", code, err, out, errs)
	}
	if out, errs, code := run("service", "status"); code != 0 || !strings.Contains(out, "nobody owns") || strings.Contains(out, "differs") {
		t.Errorf("status: exit %d: %s%s", code, out, errs)
	}
	if err := os.WriteFile(file, append(text, "# edited\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, _ := run("service", "status"); !strings.Contains(out, "differs") {
		t.Errorf("status after an edit: %s", out)
	}
	if err := os.Mkdir(filepath.Dir(link), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := run("service", "uninstall"); code != 0 || !strings.Contains(out, "systemctl --user stop thole.service") {
		t.Errorf("uninstall: exit %d: %s%s", code, out, errs)
	}
	for _, path := range []string{file, link} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	if err := os.WriteFile(file, []byte("[Service]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"service", "install"}, {"service", "uninstall"}} {
		if _, errs, code := run(args...); code != 4 || !strings.Contains(errs, "not written by thole") {
			t.Errorf("%v over another's unit: exit %d: %s", args, code, errs)
		}
	}
	if text, _ := os.ReadFile(file); string(text) != "[Service]\n" {
		t.Errorf("another's unit became %q", text)
	}
	if _, errs, code := run("--home", filepath.Join(dir, "a\nExecStartPre=x"), "service", "install", "--print"); code != 2 || !strings.Contains(errs, "control character") {
		t.Errorf("a line break in the home: exit %d: %s", code, errs)
	}
	if _, err := (&Env{}).unit("plan9"); exitCode(err) != 7 {
		t.Errorf("plan9: %v", err)
	}
}
