package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/thread"
)

// Bounds of the conversation that a new session of an agent begins with.
const (
	maxRetold     = 192 << 10 // bytes, the newest
	maxRetoldItem = 32 << 10
)

// retold is the conversation before a turn as text, for an agent whose session remembers
// more than the thread has. Agents name the places in their records differently, lose
// them when they compact, and go back in their files too; all of them read text.
func (w *worker) retold(ctx context.Context, th fold.Thread, t fold.Turn) (string, error) {
	var parts []string
	size, cut := 0, false
	page := thread.PageParams{Desc: true, Limit: 100}
	for !cut {
		items, err := w.cfg.Threads.Items(ctx, thole.SystemActor, th.ID, "", page)
		if err != nil {
			return "", err
		}
		for _, r := range items.Items {
			part := retoldItem(r.Item)
			if r.Turn == t.ID || part == "" {
				continue
			}
			if size += len(part); size > maxRetold {
				cut = true
				break
			}
			parts = append(parts, part)
		}
		if page.Cursor = items.Next; page.Cursor == "" {
			break
		}
	}
	if len(parts) == 0 {
		return "", nil
	}
	slices.Reverse(parts)
	if cut {
		parts = append([]string{"(what was said before is left out)"}, parts...)
	}
	told := "> " + strings.ReplaceAll(strings.Join(parts, "\n\n"), "\n", "\n> ")
	return "This conversation goes on from an earlier one. What was said in it:\n\n" + told +
		"\n\nFiles may have changed since. The user says now:\n\n", nil
}

// retoldItem is what an agent must know of an item, "" for nothing.
func retoldItem(it event.Item) string {
	clip := func(text string) string {
		if len(text) > maxRetoldItem {
			return strings.ToValidUTF8(fold.Clip(text, maxRetoldItem), "") + "…"
		}
		return text
	}
	switch {
	case it.Kind == event.ItemUserMessage:
		return "User: " + clip(words(it.Content))
	case (it.Kind == event.ItemMessage || it.Kind == event.ItemPlan) && it.Text != "":
		return "You: " + clip(it.Text)
	case it.Command != nil && it.Command.User:
		return "The user ran by hand: " + account(it.Command.Line, *it.Command)
	case it.Command != nil:
		return "You ran: " + account(it.Command.Line, *it.Command)
	case it.Kind == event.ItemFileChange && it.State == event.StateCompleted:
		var paths []string
		for _, c := range it.Changes {
			paths = append(paths, c.Kind+" "+cmp.Or(c.Move, c.Path))
		}
		return "You changed files: " + strings.Join(paths, ", ")
	case it.Tool != nil:
		return fmt.Sprintf("You called the tool %s (%s)", it.Tool.Name, it.State)
	}
	return ""
}

// words is what a message says; what is no text is named.
func words(input []thole.Input) string {
	var out []string
	for _, in := range input {
		switch {
		case in.Text != "":
			out = append(out, in.Text)
		case in.Name != "":
			out = append(out, "["+in.Type+" "+in.Name+"]")
		default:
			out = append(out, "["+in.Type+"]")
		}
	}
	return strings.Join(out, "\n")
}

// before puts a text before what a message says, as one text with it.
func before(text string, input []thole.Input) []thole.Input {
	if text == "" {
		return input
	}
	if len(input) == 0 || input[0].Text == "" {
		return append(thole.Text(text), input...)
	}
	input = slices.Clone(input)
	input[0].Text = text + input[0].Text
	return input
}
