// Package modelsim is a scripted language model: one HTTP server on loopback
// that speaks OpenAI Responses, OpenAI chat completions and Anthropic Messages,
// streaming and plain, so that the real agent CLIs complete turns without a
// network, a key or chance. Tests use it through Start, `thole demo-model` and
// `thole up --demo` through New and Serve.
//
// What it answers is decided from the request alone. The newest prompt that holds
// directives is the script; the step is the number of model turns that follow it
// in the conversation. Nothing about a conversation is remembered, so a retry, a
// resume and a fork all continue where the history says. The one exception is a
// fault limited with xN, which has to count its attempts.
//
// # Directives
//
// A line of the prompt that contains "sim:" carries directives to its end,
// separated by " ;; ". Several such lines are read as one script. Lines that begin with
// ">" quote and ask for nothing.
//
//	sim: think weigh it ;; say Looking. ;; run ls -la ;; say The files are %tool%
//
// Content of a step:
//
//	say TEXT                 assistant text; \n is a line break, %tool% the newest tool
//	                         results, %user% the newest prompt without its directives,
//	                         %first% the conversation's first scripted prompt likewise,
//	                         %prompts% how many of them it has,
//	                         %images% the images of the conversation with their sizes
//	think TEXT               reasoning
//	run CMD                  a shell command
//	escalate CMD             a shell command that asks to leave the sandbox (codex)
//	read PATH                read a file
//	write PATH TEXT          create or replace a file
//	edit PATH OLD => NEW     replace text in a file
//	patch TEXT               apply_patch with this patch, for CLIs that offer it
//	todo [x] A | [~] B | C   the todo list: done, in progress, open
//	ask QUESTION | A | B     a question to the user with its options
//	agent PROMPT             start a sub-agent
//	call NAME JSON           any tool by name
//	custom NAME TEXT         any free-form tool by name
//	give JSON                the answer of a request that has a schema for it
//
// Each verb becomes the tool that the request offers for it (run is exec_command,
// Bash or bash). A verb the CLI offers no tool for becomes a text that says so.
// A step ends with its tool calls: the next directive opens the next step. "and"
// before a call puts it into the same step (and run date); "then" opens a new step
// explicitly.
//
// Modifiers come before the content of their step:
//
//	slow 50ms [CHUNK]        pause between chunks of CHUNK characters
//	wait 2s                  pause before the first byte
//	usage in=10 cached=5 cachewrite=1 out=7 reasoning=2
//	stop max_tokens|refusal  end for another reason than being done
//	http 429 [xN] [retry-after=S] [type=T] [MESSAGE]
//	fail [xN] TYPE MESSAGE   an error event inside the stream
//	cut [xN]                 close the connection in mid-stream
//	hang [xN] [DURATION]     fall silent in mid-stream, for ever by default
//
// A line "sim: {…}" is one Step or a whole Script in JSON, and "sim: script NAME"
// runs a script given in Options. After the last step the answer is "done".
//
// A prompt without directives gets a canned answer that does what simple wishes
// ask (run …, write …, plan …, ask me …) and otherwise repeats the prompt. A
// request that offers no tools but has a system prompt is a CLI's side request,
// such as naming the conversation, and gets a short title.
//
// The package refuses to listen anywhere but at the given address and knows nothing
// of threads, turns or providers.
package modelsim
