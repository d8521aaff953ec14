package thread

import (
	"context"
	"errors"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// OutputPiece is a part of an output.
type OutputPiece struct {
	Offset int64
	Text   string
}

// Output is a part of a command's output. What is kept of a long one is its beginning, at
// most a MiB, and its end, as its item has it.
type Output struct {
	OutputPiece
	// Next is where to read on, 0 at the end. It is not the end of Text where a part is not kept.
	Next int64
	// Total is how many bytes the output has so far, Skipped how many of them are not kept.
	Total, Skipped int64
	// Open says that the command runs.
	Open bool
}

// itemEnds is how much an item keeps of a long output: as much of its beginning as of
// its end, each cut at a character. It is provider.OutputLimit, which a test compares.
const itemEnds = 64 << 10

// MaxOutputPage bounds one page of an output.
const MaxOutputPage = 1 << 20

// keepOutput keeps the streamed output of a command whose completed item has only the
// ends of it.
func (w *writer) keepOutput(turn thole.TurnID, item event.Item) {
	if item.Command == nil || item.Command.OutputDropped == 0 {
		return
	}
	if text, _ := w.flights.text(flightKey{item.ID, event.StreamOutput}); int64(len(text)) > int64(len(item.Command.Output))/2 {
		w.c.Outputs = append(w.c.Outputs, ItemOutput{Turn: turn, Item: item.ID, Text: text})
	}
}

// Output implements Service.
func (m *Machine) Output(ctx context.Context, actor thole.Actor, id thole.ThreadID, item thole.ItemID, offset int64, limit int) (Output, error) {
	if _, err := m.visible(ctx, actor, id); err != nil {
		return Output{}, err
	}
	if offset < 0 {
		return Output{}, thole.Errorf(thole.CodeInvalid, "the offset of an output is negative")
	}
	if limit <= 0 || limit > MaxOutputPage {
		limit = MaxOutputPage
	}
	r, err := m.store.Item(ctx, id, item)
	switch {
	case errors.Is(err, ErrNone), err == nil && r.Item.Command == nil:
		return Output{}, thole.Errorf(thole.CodeNotFound, "no command %s", item)
	case err != nil:
		return Output{}, failed("read item", err)
	}
	items := []fold.ItemRecord{r}
	if err := m.fill(ctx, actor, id, items); err != nil {
		return Output{}, err
	}
	r = items[0]
	out := Output{Open: r.Open, Total: int64(len(r.Item.Command.Output)) + r.Item.Command.OutputDropped}
	begin, end := ends(*r.Item.Command)
	length, head := int64(len(begin)), []OutputPiece{{0, begin}}
	if r.Item.Command.OutputDropped > 0 && !r.Open {
		pieces, stored, err := m.store.Output(ctx, id, r.Turn, item, offset, int64(limit))
		if err != nil {
			return Output{}, failed("read output", err)
		}
		if stored > length {
			length, head = stored, pieces
		}
		if over := length + int64(len(end)) - out.Total; over > 0 { // the two overlap
			end = end[min(over, int64(len(end))):]
		}
	}
	out.Skipped = max(0, out.Total-length-int64(len(end)))
	out.page(head, length, OutputPiece{out.Total - int64(len(end)), end}, offset, limit)
	return out, nil
}

// ends are the two parts of what an item keeps: the whole and nothing of an output that
// is whole, or that has no end (of a version that kept the beginning alone).
func ends(c event.Command) (begin, end string) {
	if c.OutputDropped == 0 || len(c.Output) > itemEnds {
		return c.Output, ""
	}
	at := min(itemEnds/2, len(c.Output))
	for at > 0 && at < len(c.Output) && !utf8.RuneStart(c.Output[at]) {
		at--
	}
	return c.Output[:at], c.Output[at:]
}

// page takes what is wanted of the beginning, which is length bytes long and of which the
// pieces are those that are wanted, or of the end.
func (o *Output) page(pieces []OutputPiece, length int64, end OutputPiece, offset int64, limit int) {
	if offset >= length {
		o.Offset = max(offset, end.Offset)
		if rest := int64(len(end.Text)) - (o.Offset - end.Offset); rest > 0 {
			o.Text = bounded(end.Text[o.Offset-end.Offset:], limit)
			o.after(end.Offset + int64(len(end.Text)))
		}
		return
	}
	o.Offset = offset
	for _, p := range pieces {
		if at := offset + int64(len(o.Text)) - p.Offset; at >= 0 && at < int64(len(p.Text)) {
			o.Text += p.Text[at:]
		}
	}
	o.Text = bounded(o.Text, limit)
	if o.after(length); o.Next == 0 && end.Text != "" {
		o.Next = end.Offset
	}
}

// after says where to read on in a part that ends at last.
func (o *Output) after(last int64) {
	if at := o.Offset + int64(len(o.Text)); at < last && at > o.Offset {
		o.Next = at
	}
}

// bounded is the beginning of a text, in whole characters where that leaves any.
func bounded(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	if cut := fold.Clip(text, limit); cut != "" {
		return cut
	}
	return text[:limit]
}
