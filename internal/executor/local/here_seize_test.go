package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/unguarded"
)

// seizures are what an agent does to a repository so that git runs a program for whom
// works in it, and where the person then runs git. MARK is the program.
var seizures = map[string]struct{ script, at string }{
	"configuration":          {`git config core.fsmonitor 'MARK'`, ""},
	"configuration replaced": {`cp .git/config n; git config -f n core.fsmonitor 'MARK'; mv -f n .git/config`, ""},
	"configuration removed":  {`cp .git/config /tmp/n; git config -f /tmp/n core.fsmonitor 'MARK'; rm -f .git/config; cp /tmp/n .git/config`, ""},
	"hard link":              {`ln .git/config h; git config -f h core.fsmonitor 'MARK'; cp .git/config n; git config -f n core.fsmonitor 'MARK'; ln -f n .git/config`, ""},
	"hook":                   {`printf '#!/bin/sh\nMARK\n' > .git/hooks/post-index-change; chmod +x .git/hooks/post-index-change; touch file`, ""},
	"hooks moved":            {`mv .git/hooks .git/h; mkdir .git/hooks; printf '#!/bin/sh\nMARK\n' > .git/hooks/post-index-change; chmod +x .git/hooks/*; touch file`, ""},
	"repository moved":       {`mv .git g; cp -r g .git; git config core.fsmonitor 'MARK'`, ""},
	"repository exchanged":   {`cp -r .git g; git config -f g/config core.fsmonitor 'MARK'; python3 -c 'import ctypes,os; ctypes.CDLL(None).renameat2(-100,b"g",-100,b".git",2)'`, ""},
	"submodule":              {`git config -f .git/modules/sub/config core.fsmonitor 'MARK'`, ""},
	"submodule moved":        {`mv .git/modules/sub .git/modules/s; cp -r .git/modules/s .git/modules/sub; git config -f .git/modules/sub/config core.fsmonitor 'MARK'`, ""},
	"submodules moved":       {`mv .git/modules .git/m; cp -r .git/m .git/modules; git config -f .git/modules/sub/config core.fsmonitor 'MARK'`, ""},
	"submodule led away":     {`cp -r .git/modules/sub /tmp/e; mv /tmp/e e; git config -f e/config core.fsmonitor 'MARK'; git config -f e/config --unset core.worktree; rm -f sub/.git; echo 'gitdir: ../e' > sub/.git`, ""},
	"submodule exchanged":    {`cp -r .git/modules/sub e; git config -f e/config core.fsmonitor 'MARK'; git config -f e/config --unset core.worktree; cp -r sub s; mv sub t; mv s sub; rm -f sub/.git; echo 'gitdir: ../e' > sub/.git`, ""},
	"linked work tree":       {`cp -r .git e; git config -f e/config core.fsmonitor 'MARK'; rm -f .git/worktrees/linked/commondir; echo ../../../e > .git/worktrees/linked/commondir`, "../linked"},
	"linked work tree moved": {`cp -r .git e; git config -f e/config core.fsmonitor 'MARK'; mv .git/worktrees/linked .git/worktrees/l; cp -r .git/worktrees/l .git/worktrees/linked; echo ../../../e > .git/worktrees/linked/commondir`, "../linked"},
	"submodule made":         {`mkdir none 2>/dev/null; git init -q none; git -C none commit -q --allow-empty -m none; git -C none config core.fsmonitor 'MARK'`, ""},
	"nested repository":      {`git config -f vendor/dep/.git/config core.fsmonitor 'MARK'`, "vendor/dep"},
	"included file":          {`git config -f .shared core.fsmonitor 'MARK'`, ""},
	"hooks of a submodule":   {`mkdir -p sub/.githooks; printf '#!/bin/sh\nMARK\n' > sub/.githooks/post-index-change; chmod +x sub/.githooks/*; touch sub/file`, "sub"},
	"hooks of a nested one":  {`mkdir -p vendor/dep/.githooks; printf '#!/bin/sh\nMARK\n' > vendor/dep/.githooks/post-index-change; chmod +x vendor/dep/.githooks/*; touch vendor/dep/file`, "vendor/dep"},
	"nested moved":           {`mv vendor v; cp -r v vendor; git config -f vendor/dep/.git/config core.fsmonitor 'MARK'`, "vendor/dep"},
}

// An agent that works in a person's directory cannot make git run anything for that
// person, by whichever way, and can do everything else to the repository.
func TestAnAgentHereCannotSeizeTheRepository(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		together := ""
		names := []string{}
		for name := range seizures {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			if !unguarded.Build { // none has an effect, so that one box is enough
				together += "(" + strings.ReplaceAll(seizures[name].script, "MARK", "touch %[1]s/"+strings.ReplaceAll(name, " ", "-")+"; false") + ") >/dev/null 2>&1; "
				continue
			}
			t.Run(name, func(t *testing.T) {
				script := strings.ReplaceAll(seizures[name].script, "MARK", "touch %[1]s/mark; false")
				if marks := seize(t, script, seizures[name].at); len(marks) == 0 {
					t.Error("without the guard the attack does not work: nothing is proven")
				}
			})
		}
		if unguarded.Build {
			return
		}
		if marks := seize(t, together+":", "", "../linked", "vendor/dep", "sub"); len(marks) > 0 {
			t.Errorf("git ran for the person: %v", marks)
		}
	})
}

// seize lets an agent run a script in a project, then git on the host, and returns what ran.
func seize(t *testing.T, script string, at ...string) (marks []string) {
	b, top, dir := workshop(t)
	mark := filepath.Join(top, "marks")
	if err := os.Mkdir(mark, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(mark, 0o777); err != nil {
		t.Fatal(err)
	}
	before := b.guarded(dir)
	if got := b.attack(b.start(), fmt.Sprintf(script, mark)+"; echo tried"); !strings.HasSuffix(got, "tried\n") {
		t.Fatalf("nothing was tried: %q", got)
	}
	if after := b.guarded(dir); after != before && !unguarded.Build {
		t.Errorf("the agent changed\n%s\nto\n%s", before, after)
	}
	for _, where := range at {
		b.git(filepath.Join(dir, where), "status")
		b.git(filepath.Join(dir, where), "commit", "-q", "--allow-empty", "-m", "after")
	}
	found, err := os.ReadDir(mark)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		marks = append(marks, e.Name())
	}
	return marks
}
