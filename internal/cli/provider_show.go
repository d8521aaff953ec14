package cli

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// turnPrinter shows a turn as plain text.
type turnPrinter struct {
	in *bufio.Reader

	mu    sync.Mutex // guards what follows
	out   io.Writer
	item  thole.ItemID // after whose text the cursor is
	fresh bool         // the cursor is at the start of a line
}

func (p *turnPrinter) event(e event.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Kind {
	case event.ItemStarted:
		p.started(e.Item)
	case event.ItemDelta:
		if e.Stream != event.StreamInput {
			p.text(e.ItemID, e.Delta)
		}
	case event.ItemCompleted:
		p.completed(e.Item)
	case event.StepReset:
		p.line("… the model starts over")
	case event.TodoSnapshot, event.TodoUpdate:
		for _, t := range e.Todos {
			p.line("  [" + map[event.TodoState]string{event.TodoDone: "x", event.TodoDoing: "~", event.TodoCanceled: "-"}[t.State] + "] " + t.Content)
		}
	case event.ErrorReported:
		if e.Error.Retrying {
			p.line("… " + e.Error.Message)
		}
	case event.NoteReported:
		p.line("note: " + e.Text)
	case event.LimitsUpdated:
		for _, l := range e.Limits {
			p.line("note: " + l.String())
		}
	case event.UsageUpdated:
	case event.TurnEnded:
		p.line("")
	}
}

func (p *turnPrinter) started(i *event.Item) {
	switch i.Kind {
	case event.ItemCommand:
		p.line("$ " + i.Command.Line)
	case event.ItemTool:
		p.line("> " + i.Tool.Name)
	case event.ItemReasoning:
		p.line("(thinking)")
	}
}

func (p *turnPrinter) completed(i *event.Item) {
	switch i.Kind {
	case event.ItemFileChange:
		for _, c := range i.Changes {
			p.line(c.Kind + " " + c.Path + ended(i.State))
			putln(p.out, quote(c.Diff))
		}
	case event.ItemCommand:
		if i.State != event.StateCompleted {
			p.line(strings.TrimPrefix(ended(i.State), " "))
		}
	}
	p.item = ""
}

func ended(s event.ItemState) string {
	if s == event.StateCompleted {
		return ""
	}
	return " (" + string(s) + ")"
}

// text continues an item's text, on a new line when another came between.
func (p *turnPrinter) text(id thole.ItemID, s string) {
	if p.item != id && !p.fresh {
		putln(p.out)
		p.fresh = true
	}
	p.item = id
	marked, fresh := quotePiece(s, p.fresh)
	put(p.out, marked)
	p.fresh = fresh
}

func (p *turnPrinter) line(s string) {
	if !p.fresh {
		putln(p.out)
	}
	p.item, p.fresh = "", true
	if s != "" {
		putln(p.out, hang(s))
	}
}

// answer asks the user. The end of the input is a denial.
func (p *turnPrinter) answer(ask event.Ask) event.Answer {
	if len(ask.Questions) > 0 {
		answers := map[string][]string{}
		for _, q := range ask.Questions {
			answers[q.ID] = p.question(q)
		}
		return event.Answer{Answers: answers}
	}
	p.mu.Lock()
	p.line("? " + ask.Title + " " + strings.TrimSpace(ask.Command+" "+ask.Reason))
	for _, c := range ask.Changes {
		p.line("  " + c.Kind + " " + c.Path)
	}
	put(p.out, "  [y]es, [a]lways, [n]o, [c]ancel, or a reason to refuse: ")
	p.mu.Unlock()
	switch reply := p.read(); strings.ToLower(reply) {
	case "y", "yes":
		return event.Answer{Decision: event.DecisionAllow}
	case "a", "always":
		return event.Answer{Decision: event.DecisionAlways}
	case "c", "cancel":
		return event.Answer{Decision: event.DecisionCancel}
	case "", "n", "no":
		return event.Answer{Decision: event.DecisionDeny}
	default:
		return event.Answer{Decision: event.DecisionDeny, Message: reply}
	}
}

// question reads numbers of options, separated by commas, or free text.
func (p *turnPrinter) question(q event.Question) []string {
	p.mu.Lock()
	p.line("? " + q.Text)
	for i, o := range q.Options {
		p.line("  " + strconv.Itoa(i+1) + ") " + o.Label)
	}
	put(p.out, "  number or text: ")
	p.mu.Unlock()
	reply := p.read()
	var picked []string
	for part := range strings.SplitSeq(reply, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 || n > len(q.Options) {
			return []string{reply}
		}
		picked = append(picked, q.Options[n-1].Label)
	}
	return picked
}

func (p *turnPrinter) read() string {
	line, _ := p.in.ReadString('\n')
	p.mu.Lock()
	p.fresh = true
	p.mu.Unlock()
	return strings.TrimSpace(line)
}
