package commandline_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tholehq/thole/internal/commandline"
)

var odd = []string{"", "a", "a b", "it's", `say "hi"`, "$HOME", "`id`", `back\slash`, "!x", "^a^b", "a^b", "é", "x=y", "*.go", "a\nb", "'", `"'$^`, "-", "#no", "~", "tab\there", ";", "&&", "{a,b}"}

// A quoted word is one word to Split and to the real shell.
func TestQuotedWordsAreOneWord(t *testing.T) {
	line := commandline.Join(odd...)
	got, ok := commandline.Split(line)
	if diff := cmp.Diff(odd, got); !ok || diff != "" {
		t.Errorf("%s (-want +got):\n%s", line, diff)
	}
	out, err := exec.Command("/bin/bash", "-c", `printf '%s\0' `+line).Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(odd, strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")); diff != "" {
		t.Errorf("bash (-want +got):\n%s", diff)
	}
}

func TestShellLines(t *testing.T) {
	for script, want := range map[string]string{
		"ls":           "/bin/bash -lc ls",
		"echo hi":      "/bin/bash -lc 'echo hi'",
		"echo it's":    `/bin/bash -lc "echo it's"`,
		`echo "$HOME"`: `/bin/bash -lc 'echo "$HOME"'`,
		"echo '$HOME'": `/bin/bash -lc "echo '"'$HOME'"'"`,
	} {
		got := commandline.Shell(script)
		if got != want {
			t.Errorf("%s: %s, want %s", script, got, want)
		}
		if back, ok := commandline.Script(got); !ok || back != script {
			t.Errorf("%s became %q", got, back)
		}
	}
	for _, line := range []string{"", "ls", "bash -lc", "bash -x ls", "python -c 'x'", "bash -lc 'a", "bash -lc a b"} {
		if script, ok := commandline.Script(line); ok {
			t.Errorf("%s runs %q in a shell", line, script)
		}
	}
}

func TestActions(t *testing.T) {
	read := func(cmd, name, path string) []commandline.Action {
		return []commandline.Action{{Kind: commandline.Read, Command: cmd, Name: name, Path: path}}
	}
	list := func(cmd, path string) []commandline.Action {
		return []commandline.Action{{Kind: commandline.List, Command: cmd, Path: path}}
	}
	search := func(cmd, query, path string) []commandline.Action {
		return []commandline.Action{{Kind: commandline.Search, Command: cmd, Query: query, Path: path}}
	}
	for script, want := range map[string][]commandline.Action{
		"cat a/b.txt":                           read("cat a/b.txt", "b.txt", "/w/a/b.txt"),
		"cat -- '/etc/a b'":                     read("cat -- '/etc/a b'", "a b", "/etc/a b"),
		"sed -n 1,20p src/x.go":                 read("sed -n '1,20p' src/x.go", "x.go", "/w/src/x.go"),
		"cat x | sed -n 1,20p":                  read("cat x | sed -n 1,20p", "x", "/w/x"),
		"head -n 5 x":                           read("head -n 5 x", "x", "/w/x"),
		"head -n5 x":                            read("head -n5 x", "x", "/w/x"),
		"tail -n +10 x":                         read("tail -n +10 x", "x", "/w/x"),
		"nl -ba x | sed -n 1,3p":                read("nl -ba x | sed -n 1,3p", "x", "/w/x"),
		"cd sub && cat x":                       read("cat x", "x", "/w/sub/x"),
		"ls -la":                                list("ls -la", ""),
		"ls packages/src":                       list("ls packages/src", "packages"),
		"rg --files | head -n 50":               list("rg --files", ""),
		"find . -type f":                        list("find . -type f", "."),
		"git ls-files src":                      list("git ls-files src", "src"),
		"find a -name '*.go'":                   search("find a -name '*.go'", "*.go", "a"),
		"rg -n 'a b' internal":                  search("rg -n 'a b' internal", "a b", "internal"),
		"grep -R TODO .":                        search("grep -R TODO .", "TODO", "."),
		"grep -e x f | wc -l":                   search("grep -e x f", "x", "f"),
		"git grep needle":                       search("git grep needle", "needle", ""),
		"echo here && ls":                       list("ls", ""),
		"cat a && cat a":                        read("cat a", "a", "/w/a"),
		"make":                                  {{Kind: commandline.Unknown, Command: "make"}},
		"cat a && make":                         {{Kind: commandline.Unknown, Command: "cat a && make"}},
		"cat a > b":                             {{Kind: commandline.Unknown, Command: "cat a > b"}},
		"cat $(rm x)":                           {{Kind: commandline.Unknown, Command: "cat $(rm x)"}},
		`cat "$(rm x)"`:                         {{Kind: commandline.Unknown, Command: `cat "$(rm x)"`}},
		"X=1 cat a":                             {{Kind: commandline.Unknown, Command: "X=1 cat a"}},
		"cat a & rm b":                          {{Kind: commandline.Unknown, Command: "cat a & rm b"}},
		"cat a #":                               {{Kind: commandline.Unknown, Command: "cat a #"}},
		"sed -i s/a/b/ f":                       {{Kind: commandline.Unknown, Command: "sed -i s/a/b/ f"}},
		"sed -ni 1,2p f":                        {{Kind: commandline.Unknown, Command: "sed -ni 1,2p f"}},
		"find . -delete":                        {{Kind: commandline.Unknown, Command: "find . -delete"}},
		"cat a | tee b":                         {{Kind: commandline.Unknown, Command: "cat a | tee b"}},
		"cat a |":                               {{Kind: commandline.Unknown, Command: "cat a |"}},
		"":                                      {{Kind: commandline.Unknown}},
		"cat " + strings.Repeat("a", 9<<10):     {{Kind: commandline.Unknown, Command: "cat " + strings.Repeat("a", 9<<10)}},
		"cat a\nmake":                           {{Kind: commandline.Unknown, Command: "cat a\nmake"}},
		"if true; then cat a; fi":               {{Kind: commandline.Unknown, Command: "if true; then cat a; fi"}},
		"wc -l":                                 {{Kind: commandline.Unknown, Command: "wc -l"}},
		`"cat" a`:                               {{Kind: commandline.Unknown, Command: `"cat" a`}},
		`cat "a\"b"`:                            {{Kind: commandline.Unknown, Command: `cat "a\"b"`}},
		"awk -F: '{print}' /etc/hosts | sort":   read("awk -F: '{print}' /etc/hosts", "hosts", "/etc/hosts"),
		"cat a; ls b":                           append(read("cat a", "a", "/w/a"), list("ls b", "b")...),
		"fd needle src | sort | uniq | head -3": search("fd needle src", "needle", "src"),
	} {
		if diff := cmp.Diff(want, commandline.Actions(script, "/w")); diff != "" {
			t.Errorf("%.60q (-want +got):\n%s", script, diff)
		}
	}
}

// Whatever an agent writes: words survive quoting, and a script that is not understood
// whole is one unknown action with its own text.
func FuzzLines(f *testing.F) {
	for _, s := range odd {
		f.Add(s, "cat "+s)
	}
	f.Add("a", "cd x && cat y | sed -n 1,2p; ls || true")
	f.Fuzz(func(t *testing.T, word, script string) {
		if strings.Contains(word, "\x00") {
			return // no argument can hold it
		}
		if got, ok := commandline.Split(commandline.Join("x", word)); !ok || !slices.Equal(got, []string{"x", word}) {
			t.Fatalf("%q became %q", word, got)
		}
		list := commandline.Actions(script, "/w")
		if len(list) == 0 {
			t.Fatalf("%q does nothing", script)
		}
		for _, a := range list {
			switch {
			case a.Kind == commandline.Unknown && (len(list) > 1 || a.Command != script):
				t.Fatalf("%q is partly unknown: %+v", script, list)
			case a.Kind == commandline.Read && (!strings.HasPrefix(a.Path, "/") || a.Name == ""):
				t.Fatalf("%q reads %+v", script, a)
			}
		}
	})
}
