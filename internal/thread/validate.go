package thread

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// Limits of what callers may send. The contract's edges have their own frame
// limits in front of these.
const (
	maxInput = 16 << 20 // bytes of one message, images and files included
	maxParts = 256
	// maxAnswer is what reaches the agent and comes back in its report however it is
	// escaped: once recorded, an answer that does not would be waited for for ever.
	maxAnswer = 4 << 20
	maxName   = 512
	maxKey    = 1024
)

func checkInput(input []thole.Input) error {
	if len(input) > maxParts {
		return thole.Errorf(thole.CodeInvalid, "input has %d parts; at most %d are taken", len(input), maxParts)
	}
	size := 0
	for i, in := range input {
		switch in.Type {
		case "text":
			if in.URL != "" {
				return thole.Errorf(thole.CodeInvalid, "input part %d: text with a url", i)
			}
		case "image":
			if in.URL == "" {
				return thole.Errorf(thole.CodeInvalid, "input part %d: an image needs a url", i)
			}
		case thole.InputFile:
			if in.Name != thole.FileName(in.Name) || in.Text != "" {
				return thole.Errorf(thole.CodeInvalid, "input part %d: a file needs a plain name", i)
			}
			if _, _, err := in.Content(); err != nil {
				return err
			}
		default:
			return thole.Errorf(thole.CodeInvalid, "input part %d: unknown type %q", i, in.Type).WithHint("use text, image or file")
		}
		if !utf8.ValidString(in.Text) || !utf8.ValidString(in.URL) {
			return thole.Errorf(thole.CodeInvalid, "input part %d: not valid UTF-8", i)
		}
		size += len(in.Text) + len(in.URL)
	}
	if size > maxInput {
		return thole.Errorf(thole.CodeInvalid, "input has %d bytes; at most %d are taken", size, maxInput).
			WithHint("put large content into a file of the workspace")
	}
	return nil
}

func checkSome(input []thole.Input, clientID string) error {
	if len(input) == 0 {
		return thole.Errorf(thole.CodeInvalid, "input must not be empty")
	}
	return checkMessage(input, clientID)
}

// maxLine bounds a command line; the kernel takes no longer argument.
const maxLine = 120 << 10

func checkTurnCommand(input []thole.Input, clientID string) error {
	command, line := thole.TurnCommandOf(input)
	if command == "" {
		return thole.Errorf(thole.CodeInvalid, "input is not a turn command")
	}
	if command == thole.TurnCommandShell && strings.TrimSpace(line) == "" {
		return thole.Errorf(thole.CodeInvalid, "command must not be empty")
	}
	if n, err := strconv.Atoi(line); command == thole.TurnCommandUndo && (err != nil || n < 1) {
		return thole.Errorf(thole.CodeInvalid, "undo needs the number of a turn")
	}
	if err := checkText("client id", clientID, maxKey); err != nil {
		return err
	}
	if err := checkText("prompt", thole.ReviewPrompt(input), maxLine); err != nil {
		return err
	}
	return checkText("command", line, maxLine)
}

func checkText(what, s string, limit int) error {
	if len(s) > limit {
		return thole.Errorf(thole.CodeInvalid, "%s has %d bytes; at most %d are taken", what, len(s), limit)
	}
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return thole.Errorf(thole.CodeInvalid, "%s is not plain UTF-8 text", what)
	}
	return nil
}

func checkID(what, id string) error {
	if !thole.ValidUUID(id) {
		return thole.Errorf(thole.CodeInvalid, "%s %q is not a lower-case UUID", what, id)
	}
	return nil
}

func checkMessage(input []thole.Input, clientID string) error {
	if err := checkText("client id", clientID, maxKey); err != nil {
		return err
	}
	return checkInput(input)
}

// sound replaces JSON that a provider got wrong by a JSON string of it, so that
// the log can always be written.
func sound(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || json.Valid(raw) {
		return raw
	}
	quoted, _ := json.Marshal(string(raw)) // a string always encodes
	return quoted
}

func soundTool(t *event.ToolCall) *event.ToolCall {
	if t == nil {
		return nil
	}
	c := *t
	c.Input, c.Output = sound(c.Input), sound(c.Output)
	return &c
}
