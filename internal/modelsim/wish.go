package modelsim

import "strings"

// Wish is the script for a prompt without directives. It does what a few simple
// sentences ask, so that a person trying thole without a model sees every kind of
// item, and repeats everything else, or says what there is to try.
func Wish(prompt string, o Options) Script {
	words := strings.TrimSpace(prompt)
	lower := strings.ToLower(words)
	switch {
	case o.Sample && (strings.HasPrefix(lower, "fix") || strings.Contains(lower, "greeting")):
		return fixSample
	case strings.HasPrefix(lower, "run "):
		cmd := strings.Trim(words[len("run "):], "`\"' ")
		return Script{Steps: []Step{
			{Reasoning: "A command is asked for.", Text: "Running `" + cmd + "`.", Calls: []Call{{Verb: VerbRun, Command: cmd}}},
			{Text: "It printed:\n\n```\n%tool%\n```"},
		}}
	case strings.HasPrefix(lower, "write "), strings.HasPrefix(lower, "create "):
		path, text := fileWish(words)
		return Script{Steps: []Step{
			{Text: "Writing " + path + ".", Calls: []Call{{Verb: VerbWrite, Path: path, Text: text}}},
			{Text: "Wrote `" + path + "`."},
		}}
	case strings.HasPrefix(lower, "plan"):
		return Script{Steps: []Step{
			{Text: "Here is a plan.", Calls: []Call{{Verb: VerbTodo, Todos: []Todo{
				{"Look around", "completed"}, {"Make the change", "in_progress"}, {"Run the tests", "pending"},
			}}}},
			{Text: "The plan is on the list: look around, make the change, run the tests."},
		}}
	case strings.HasPrefix(lower, "ask me"), strings.HasPrefix(lower, "ask "):
		return Script{Steps: []Step{
			{Text: "One question first.", Calls: []Call{{Verb: VerbAsk, Text: "Which colour do you like best?", Options: []string{"Green", "Blue"}}}},
			{Text: "Thank you. You answered:\n\n%tool%"},
		}}
	case strings.HasPrefix(lower, "think"):
		return Script{Steps: []Step{{Reasoning: "First I look at the question.\nThen I weigh two answers.", Text: "I thought about it: " + words}}}
	}
	if o.Sample {
		return Script{Steps: []Step{{Text: tryThis}}}
	}
	text := "You said: " + clip(words, 2000)
	if o.Demo {
		text += "\n\nI am a scripted model, so this is all I know. Try: `run ls -la`, `write notes.txt with hello`, `plan`, `ask me`, `think about rowing`."
	}
	return Script{Steps: []Step{{Text: text}}}
}

// fixSample mends the sample repository: its test fails, one letter is missing.
var fixSample = Script{Steps: []Step{
	{Reasoning: "First I look whether there is a test.", Text: "I run the test.", Calls: []Call{{Verb: VerbRun, Command: "sh test.sh"}}},
	{Text: "It says:\n\n```\n%tool%\n```", Calls: []Call{{Verb: VerbRead, Path: "greet.sh"}}},
	{Text: "A letter is missing in `greet.sh`.", Calls: []Call{{Verb: VerbEdit, Path: "greet.sh", Old: `echo "Helo, ${1:-world}!"`, New: `echo "Hello, ${1:-world}!"`}}},
	{Text: "Now the test again.", Calls: []Call{{Verb: VerbRun, Command: "sh test.sh"}}},
	{Text: "It says:\n\n```\n%tool%\n```\n\nThe change is on a branch of its own. Look at it under Changes or with `thole thread diff`, and take it over with `thole thread apply`."},
}}

const tryThis = "I am a scripted agent: no model, no network, no key. Threads here work on a copy of a small sample repository, each on a branch of its own, unless you chose other files. Try:\n\n" +
	"- `fix the greeting`: runs a test that fails, changes a file and runs the test again; you approve each step and see the diff\n" +
	"- `run ls -la`: runs a command\n- `write notes.txt with hello`: writes a file\n- `plan`: makes a plan\n- `ask me`: asks you something\n- `think about rowing`: thinks"

// fileWish reads "write [a] [file] NAME with TEXT".
func fileWish(words string) (path, text string) {
	head, text, _ := strings.Cut(words, " with ")
	path = "hello.txt"
	for _, w := range strings.Fields(head)[1:] {
		if strings.Contains(w, ".") || strings.Contains(w, "/") {
			path = strings.Trim(w, "`\"'")
		}
	}
	if text == "" {
		text = "Hello from the scripted model."
	}
	return path, strings.TrimRight(text, "\n") + "\n"
}

// title names a conversation in a few words of its prompt.
func title(prompt string) string {
	_, words := directives(prompt)
	fields := strings.Fields(clip(words, 200))
	if len(fields) > 6 {
		fields = fields[:6]
	}
	if len(fields) == 0 {
		return "Scripted conversation"
	}
	return strings.Join(fields, " ")
}

func clip(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:n]) + "…"
}
