//go:build linux

package cli

import (
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/poll"
)

// asking starts a run that asks for a command, and returns when it does.
func (r *rig) asking(columns uint16, model, command string, flags ...string) (s *seat, id string) {
	r.Helper()
	s = r.sit(columns, append(append([]string{"run", "--model", model, "--profile", "ask"}, flags...), "Work sim: escalate "+command+" ;; say the end %tool%")...)
	s.sees("thread ")
	id = strings.TrimSpace(s.sees("\n"))
	return s, id
}

// What another client answers meanwhile is not asked any more, and the run goes on; a denial
// with words reaches the agent; a person may write another command where the agent takes one.
func TestAnswers(t *testing.T) {
	r := newRig(t)
	for _, model := range agents {
		t.Run(strings.TrimSuffix(model, "/default"), func(t *testing.T) {
			r := r.of(t)
			s, id := r.asking(80, model, "touch first")
			s.sees("allow? y/")
			if all := s.all(); !strings.Contains(all, "\x1b[22;2t\x1b]2;thole: ") || !strings.Contains(all, " asks\x07\x07") { // the title, and the bell
				t.Errorf("nothing calls who looks elsewhere: %q", all)
			}
			s.types("half an ans") // the line is not over
			r.must("thread", "answer", id, "--decision", "allow")
			s.sees("allowed elsewhere, by thole-cli")
			s.sees("the end")
			s.ends(0)
			if !strings.Contains(s.all(), "\x1b[23;2t") {
				t.Error("the title stayed")
			}

			s = r.sit(80, "thread", "send", id, "sim: escalate touch second ;; say so %tool%")
			s.sees("allow? y/")
			s.types("n \x1b[D\n") // an arrow is no reason
			s.sees("not an answer: arrows")
			s.sees("allow? y/")
			s.types("n use make instead\n")
			s.sees("denied")
			s.ends(0)

			s = r.sit(80, "thread", "send", id, "sim: escalate touch third ;; say and on")
			s.sees("allow? y/")
			edit := strings.Contains(s.all(), "/e")
			if edit != (model == "claude/default") {
				t.Errorf("editing is offered: %v", edit)
			}
			if !edit {
				s.types("c\n")
				s.ends(4)
				return
			}
			s.types("e\n")
			s.sees("run instead")
			s.types("touch another-one\n")
			s.sees("and on")
			s.ends(0)
			if names := r.must("thread", "diff", "--name-only", id); !strings.Contains(names, "another-one") || strings.Contains(names, "third") || strings.Contains(names, "second") || !strings.Contains(names, "first") {
				t.Errorf("changed: %s", names)
			}
		})
	}
}

// Scripts choose what becomes of a question, and its exit code says that it waits.
func TestScriptsAreNotAsked(t *testing.T) {
	r := newRig(t)
	const work = "Work sim: escalate touch asked ;; say the end %tool%"
	for _, model := range agents {
		t.Run(strings.TrimSuffix(model, "/default"), func(t *testing.T) {
			r := r.of(t)
			out, errs, code := r.in(r.repo, "run", "--model", model, "--profile", "ask", "--on-ask", "fail", work)
			if code != 8 || !strings.Contains(errs, "waits for a human") || !strings.Contains(errs, "thole inbox") {
				t.Fatalf("fail: exit %d: %s%s", code, out, errs)
			}
			id := strings.Fields(out)[1]
			if out := r.must("ps"); !strings.Contains(out, "waiting") || !strings.Contains(out, id[:8]) {
				t.Errorf("ps: %s", out)
			}
			if out, errs, code := r.in(r.repo, "thread", "wait", id); code != 8 {
				t.Errorf("wait: exit %d: %s%s", code, out, errs)
			}
			list := r.must("inbox")
			if !strings.Contains(list, "touch asked") || !strings.Contains(list, id) {
				t.Fatalf("inbox: %s", list)
			}
			ask := strings.Fields(list)[0]
			r.must("inbox", "answer", ask[:len(ask)-4], "--decision", "allow")
			if out, errs, code := r.in(r.repo, "thread", "wait", id); code != 0 || !strings.Contains(out, "completed") {
				t.Errorf("wait: exit %d: %s%s", code, out, errs)
			}
			if out, errs, code := r.in(r.repo, "run", "--model", model, "--profile", "ask", "--on-ask", "allow", work); code != 0 || !strings.Contains(out, "the end") || !strings.Contains(errs, "allowed to run a command") {
				t.Errorf("allow: exit %d: %s%s", code, out, errs)
			}
			if out, errs, code := r.in(r.repo, "run", "--model", model, "--profile", "ask", "--timeout", "2s", "Wait sim: wait 40s ;; say late"); code != 5 || !strings.Contains(errs, "the turn goes on") {
				t.Errorf("timeout: exit %d: %s%s", code, out, errs)
			}
			r.must("thread", "interrupt", "--all")
		})
	}
}

// A closed terminal answers nothing, and neither do the end of the input, an empty line and
// what was typed before the question.
func TestNobodyAnswers(t *testing.T) {
	r := newRig(t)
	s, id := r.asking(80, "test/script", "echo asked")
	s.sees("allow? y/")
	if err := s.keys.Close(); err != nil {
		t.Fatal(err)
	}
	<-s.done
	if out := r.must("thread", "show", id); !strings.Contains(out, "waits for you") {
		t.Errorf("a closed terminal: %s", out)
	}
	r.must("thread", "interrupt", id)

	s = r.sit(80, "run", "--model", "test/script", "--profile", "ask", "Work sim: wait 3s ;; run echo asked ;; say the end")
	s.sees("thread ")
	s.types("y\ny\ny\n") // before anything is asked
	s.sees("allow? y/")
	s.types("\n")
	s.sees("allow? y/")
	s.types("\x04")
	s.sees("waits for a human")
	s.ends(8)

	s, id = r.asking(80, "test/script", "echo asked")
	s.sees("allow? y/")
	s.types("\x03")
	s.sees("the turn goes on: thole thread tail " + id)
	s.ends(130)
	inbox := r.sit(80, "inbox")
	for range 2 {
		inbox.sees("echo asked")
		inbox.sees("allow? y/")
		inbox.types("y\n")
		inbox.sees("allowed")
	}
	inbox.ends(0)
	poll.Until(t, "the end of all turns", func() bool { return strings.Contains(r.must("ps"), "no turn is running") })
}
