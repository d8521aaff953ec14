package tui

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// row is something a user does in the TUI.
type row struct {
	name string
	do   func(*session)
	soak bool // runs with THOLE_SOAK only
}

// asked says a line and waits for the question that follows, then presses keys.
func (c *session) asked(line string, shown []string, keys ...string) {
	c.t.Helper()
	c.say(line)
	c.keep(line, c.since(line, shown...))
	for _, k := range keys {
		c.keys(k)
	}
}

// since waits until the screen shows texts after what was typed.
func (c *session) since(line string, texts ...string) string {
	c.t.Helper()
	return c.until(strings.Join(texts, ", "), func(shown string) bool {
		all := squeeze(shown)
		i := strings.LastIndex(all, squeeze(line))
		if i < 0 {
			return false
		}
		all = all[i+len(squeeze(line)):]
		for _, text := range texts {
			if !strings.Contains(all, squeeze(text)) {
				return false
			}
		}
		return true
	})
}

// said waits for the end of what a line began.
func (c *session) said(line string, texts ...string) {
	c.t.Helper()
	end := "Worked for"
	if slices.Contains(texts, interrupted) {
		end = interrupted
	}
	c.keep(line, c.since(line, append(texts, end)...))
}

// interrupted is how the TUI shows the end of a turn that was stopped, instead of how long
// it worked.
const interrupted = "Conversation interrupted"

var rows = []row{
	{name: "stream", do: func(c *session) {
		const line = `sim: slow 150ms 6 ;; say Early words.\n\nThen come others.\n\nAnd others still.\n\nLate words.`
		c.say(line)
		if shown := c.since(line, "• Early words."); strings.Contains(shown[strings.Index(shown, "• Early"):], "Late words.") {
			c.t.Error("the answer came all at once")
		}
		c.said(line, "Late words.")
	}},
	{name: "approved command", do: func(c *session) {
		const line = `sim: escalate touch made && echo approved-$((40+2)) ;; say it ran`
		c.asked(line, []string{"$ touch made && echo approved-$((40+2))", "Yes, proceed"})
		c.has("made", "")
		c.keys("y")
		c.said(line, "approved-42", "• it ran")
		c.exists("made")
	}},
	{name: "declined command", do: func(c *session) {
		const line = `sim: escalate touch never ;; say went on`
		if c.agent == alone { // offers no way to go on without
			c.asked(line, []string{"$ touch never", "No, and tell"}, "Escape")
			c.said(line, interrupted)
		} else {
			c.asked(line, []string{"$ touch never", "(d)"}, "d")
			c.said(line, "• went on")
		}
		c.has("never", "")
	}},
	{name: "approved edit", do: func(c *session) {
		const write = `sim: write notes.txt one\ntwo\nthree\n ;; say wrote it`
		c.asked(write, []string{"make the following edits?", "notes.txt", "1 +one", "3 +three"})
		c.has("notes.txt", "")
		c.keys("y")
		c.said(write, "• wrote it")
		c.has("notes.txt", "one\ntwo\nthree\n")
		const edit = `sim: edit notes.txt two => 2 ;; say changed it`
		c.asked(edit, []string{"make the following edits?", "notes.txt", "2 -two", "2 +2"})
		c.has("notes.txt", "one\ntwo\nthree\n")
		c.keys("y")
		c.said(edit, "• changed it")
		c.has("notes.txt", "one\n2\nthree\n")
	}},
	{name: "declined edit", soak: true, do: func(c *session) {
		const line = `sim: edit notes.txt three => 3 ;; say left it`
		c.asked(line, []string{"make the following edits?", "3 -three", "3 +3"}, "Escape") // the TUI's only no
		c.said(line, interrupted)
		c.has("notes.txt", "one\n2\nthree\n")
	}},
	{name: "tool", soak: true, do: func(c *session) {
		call := map[string]string{
			"claude":   `WebFetch {"url":"http://127.0.0.1:1/x","prompt":"what"}`,
			"opencode": `webfetch {"url":"http://127.0.0.1:1/x","format":"text"}`,
		}[c.agent]
		if call == "" {
			return
		}
		no, yes := "sim: call "+call+" ;; say refused: %tool%", "sim: call "+call+" ;; say tried: %tool%"
		c.asked(no, []string{"http://127.0.0.1:1/x", "Yes, proceed"}, "d")
		c.said(no, "• refused:", "The user denied this.")
		c.asked(yes, []string{"http://127.0.0.1:1/x", "Yes, proceed"}, "y")
		c.said(yes, "• tried:")
		if shown := c.text(); strings.Contains(shown[strings.LastIndex(shown, "• tried:"):], "denied") {
			c.t.Error("the agent was denied what the user allowed")
		}
	}},
	{name: "question", soak: true, do: func(c *session) {
		const line = `sim: ask Which colour? | red | green ;; say chosen: %tool%`
		c.asked(line, []string{"1. red", "2. green"}, "2", "Enter")
		c.said(line, "• chosen:", "green")
	}},
	{name: "plan", soak: true, do: func(c *session) {
		const line = `sim: todo [x] read it | [~] write it ;; say planned`
		c.say(line)
		c.said(line, "Updated Plan", "read it", "write it", "• planned")
	}},
	{name: "steer", soak: true, do: func(c *session) {
		const line = `sim: escalate touch .git/begun; until [ -e .git/go ]; do sleep 0.05; done ;; say went on`
		c.asked(line, []string{"Yes, proceed"}, "y")
		c.exists(".git/begun")
		c.say("sim: say the steered answer")
		c.touch(".git/go")
		c.said(line, "• the steered answer")
	}},
	{name: "queue", soak: true, do: func(c *session) {
		const line = `sim: escalate touch .git/begun2; until [ -e .git/go2 ]; do sleep 0.05; done ;; say the first is over`
		c.asked(line, []string{"Yes, proceed"}, "y")
		c.exists(".git/begun2")
		c.run("send-keys", "-l", "sim: say the queued answer")
		c.since(line, "sim: say the queued answer")
		c.keys("Tab")
		c.since(line, "Queued")
		c.touch(".git/go2")
		c.since(line, "• the first is over")
		c.said("sim: say the queued answer", "• the queued answer")
	}},
	{name: "interrupt", soak: true, do: func(c *session) {
		const line = `sim: hang`
		c.say(line)
		c.since(line, working)
		c.keys("Escape")
		c.said(line, interrupted)
	}},
	{name: "shell", soak: true, do: func(c *session) {
		const line = `!echo by-hand | tr a-z A-Z; pwd`
		c.say(line)
		c.said("You ran echo by-hand", "BY-HAND", c.dir)
	}},
	{name: "message during a command", do: func(c *session) {
		c.say(`!touch .git/begun3; until [ -e .git/go3 ]; do sleep 0.05; done`)
		c.exists(".git/begun3")
		const line = `sim: say after the command`
		c.say(line)
		c.touch(".git/go3")
		c.said(line, "• after the command")
	}},
	{name: "image", soak: true, do: func(c *session) {
		c.attach()
		const line = `sim: say saw %images%`
		c.say(line)
		c.said(line, "• saw", "image/png")
	}},
	{name: "diff", soak: true, do: func(c *session) {
		c.say("/diff")
		c.wait("D I F F", "notes.txt", "+one")
		c.keys("q")
		c.until("the thread again", func(shown string) bool { return !strings.Contains(shown, "D I F F") })
	}},
	{name: "review", soak: true, do: func(c *session) {
		c.say("/review")
		c.wait("Select a review preset", "2. Review uncommitted changes")
		c.keys("2")
		c.said("Code review started: current changes", "Code review finished")
	}},
	{name: "status", soak: true, do: func(c *session) {
		c.say("/status")
		c.wait("Model:", "Directory:", "Permissions:")
	}},
	{name: "model", soak: true, do: func(c *session) {
		c.say("/model")
		if shown := c.wait("Select Model and Effort", "(current)"); c.agent != alone && strings.Contains(shown, "Scripted agent:") {
			c.t.Error("a model is offered that the thread cannot have")
		}
		c.keys("Escape")
		c.until("the prompt", func(shown string) bool { return !strings.Contains(shown, "Select Model") })
	}},
	{name: "compact", soak: true, do: func(c *session) {
		c.say("/compact")
		c.said("Context compacted")
	}},
	{name: "fork", soak: true, do: func(c *session) {
		c.say("/fork")
		if shown := c.until("the fork", func(shown string) bool {
			return strings.Contains(shown, where) || strings.Contains(shown, "Fork created")
		}); strings.Contains(shown, where) {
			c.keys("Enter")
		}
		c.wait("Fork created")
		const line = `sim: say in the fork`
		c.say(line)
		c.said(line, "• in the fork")
	}},
}

// where is what the TUI asks before it forks a conversation in a repository.
const where = "Where should the forked conversation run?"

// unlike are the rows on which an agent's screen differs from that of codex alone, and why.
var unlike = map[string]string{
	"declined command": "codex alone can only be stopped, not told to go on without",
	"tool":             "codex has no such tool",
	"review":           "thole asks for a review in words of its own",

	"codex: declined edit": "thole shows the edit as failed before it shows the stop",

	"claude: question":   "its call of the tool is shown too",
	"claude: plan":       "its call of the tool is shown too",
	"claude: steer":      "it says in words that a command printed nothing, and may finish its answer first",
	"claude: queue":      "it says in words that a command printed nothing",
	"opencode: question": "its call of the tool is shown too",
	"opencode: plan":     "its call of the tool is shown too",
}

// The installed TUI on threads of each agent, through the program as it is shipped: it
// shows what it shows for codex alone. What every user does comes first and runs always,
// the rest with THOLE_SOAK.
func TestEveryAgent(t *testing.T) {
	h := home.New(t)
	h.Vars = []string{"THOLE_PROVIDERS_CODEX=" + lab.Codex(t), "THOLE_PROVIDERS_CLAUDE=" + lab.Claude(t), "THOLE_PROVIDERS_OPENCODE=" + lab.Opencode(t)}
	h.Up()
	want := map[string][]string{}
	byItself(t).goThrough(func(r row, shots []string) { want[r.name] = shots })
	for _, agent := range []string{"codex", "claude", "opencode"} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			started(t, h, agent).goThrough(func(r row, shots []string) {
				if unlike[r.name] != "" || unlike[agent+": "+r.name] != "" {
					return
				}
				if diff := cmp.Diff(alike(agent, want[r.name]), alike(agent, shots)); diff != "" {
					t.Errorf("%s (-codex alone +thole):\n%s", r.name, diff)
				}
			})
		})
	}
}

// alike leaves out what only codex says in a question: why it asks, and its own rules.
func alike(agent string, shots []string) (out []string) {
	for _, s := range shots {
		if agent != "codex" {
			s = ofCodex.ReplaceAllString(s, "")
		}
		out = append(out, s)
	}
	return out
}

var ofCodex = regexp.MustCompile(`(?m)^  Reason: .*\n|^  N\. Yes, and don't ask again .*\n(     .*\n)?`)

// goThrough does all rows one after the other.
func (c *session) goThrough(done func(row, []string)) {
	c.t.Helper()
	for _, r := range rows {
		if r.soak && os.Getenv("THOLE_SOAK") == "" {
			continue
		}
		c.t.Logf("%s", r.name)
		c.shots = nil
		r.do(c)
		done(r, c.shots)
	}
}
