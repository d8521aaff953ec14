package thread

import (
	"context"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/authz"
)

// Hit is one message that a search found, with what its thread is known by.
type Hit struct {
	Item     fold.ItemRecord
	Thread   thole.ThreadID
	Asked    time.Time // when its turn was asked for
	Steer    bool      // a user's message to a turn that was running
	Name     string
	Preview  string
	Provider string
	Archived bool
	// Before, Match and After are the place in the message: Match is as it is written there.
	Before, Match, After string
}

// Search selects messages by a part of their text.
type Search struct {
	Text     string
	Thread   thole.ThreadID // "" for all threads; one thread is searched even when archived
	Archived bool           // of archived threads instead of the others
	PageParams
}

// HitQuery selects messages, exclusively following a position, newest first.
type HitQuery struct {
	Scope    authz.Scope
	Text     string
	Thread   thole.ThreadID
	Archived bool
	At       time.Time // zero: from the start
	AtThread thole.ThreadID
	AtSeq    uint64
	Limit    int
}

// What is shown around a match, in characters.
const (
	shownBefore = 60
	shownAfter  = 140
)

// Search implements Service. Pages go forward only.
func (m *Machine) Search(ctx context.Context, actor thole.Actor, p Search) (Page[Hit], error) {
	if !actor.Valid() {
		return Page[Hit]{}, errNoActor()
	}
	if strings.TrimSpace(p.Text) == "" {
		return Page[Hit]{}, thole.Errorf(thole.CodeInvalid, "search term is empty").WithHint("name a part of the text to find")
	}
	if err := checkText("search term", p.Text, maxName); err != nil {
		return Page[Hit]{}, err
	}
	if p.Thread != "" { // unknown and forbidden are errors, not an empty page
		if _, err := m.Get(ctx, actor, p.Thread); err != nil {
			return Page[Hit]{}, err
		}
	}
	scope, err := m.cfg.Access(ctx, actor, authz.ViewThread)
	if err != nil {
		return Page[Hit]{}, failed("read rights", err)
	}
	if p.Thread == "" {
		scope = scope.Mine(actor)
	}
	limit := pageLimit(p.Limit)
	q := HitQuery{Scope: scope, Text: p.Text, Thread: p.Thread, Archived: p.Archived, Limit: limit + 1}
	if p.Cursor != "" {
		if err := q.follow(p.Cursor); err != nil {
			return Page[Hit]{}, err
		}
	}
	rows, err := m.store.Hits(ctx, q)
	if err != nil {
		return Page[Hit]{}, failed("search messages", err)
	}
	page := Page[Hit]{Items: rows}
	if len(rows) > limit {
		last := rows[limit-1]
		page.Items = rows[:limit]
		page.Next = encodeCursor(strconv.FormatInt(thole.Millis(last.Asked), 10) + "/" + string(last.Thread) + "/" + strconv.FormatUint(last.Item.Seq, 10))
	}
	for i := range page.Items {
		h := &page.Items[i]
		h.Before, h.Match, h.After = excerpt(SaidText(h.Item.Item), p.Text)
	}
	return page, nil
}

// follow sets the position from a cursor.
func (q *HitQuery) follow(cursor string) error {
	s, err := decodeCursor(cursor)
	if err != nil {
		return err
	}
	parts := strings.Split(s, "/")
	if len(parts) != 3 || !thole.ValidUUID(parts[1]) {
		return errCursor(cursor)
	}
	ms, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || ms <= 0 {
		return errCursor(cursor)
	}
	if q.AtSeq, err = strconv.ParseUint(parts[2], 10, 63); err != nil {
		return errCursor(cursor)
	}
	q.At, q.AtThread = thole.FromMillis(ms), thole.ThreadID(parts[1])
	return nil
}

// SaidText is what a search looks into: what user and agent say. "" for other items.
func SaidText(it event.Item) string {
	switch it.Kind {
	case event.ItemMessage:
		return it.Text
	case event.ItemUserMessage:
		var b strings.Builder
		for _, in := range it.Content {
			b.WriteString(in.Text)
			b.WriteString(in.Name)
			b.WriteByte('\n')
		}
		return b.String()
	}
	return ""
}

// FoldText is the form in which texts are compared: one rune for each of s, so that a
// place in one is a place in the other.
func FoldText(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "") // PostgreSQL stores neither
	return strings.Map(unicode.ToLower, s)
}

// excerpt finds term in text and returns it as written there, with what is around it.
// Without a match it is the beginning of the text.
func excerpt(text, term string) (before, match, after string) {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
	folded := FoldText(text)
	at := strings.Index(folded, FoldText(term))
	if at < 0 {
		return "", "", cut(text, shownAfter)
	}
	runes := []rune(text)
	start := utf8.RuneCountInString(folded[:at])
	end := start + utf8.RuneCountInString(FoldText(term))
	from := max(0, start-shownBefore)
	before = string(runes[from:start])
	if from > 0 {
		before = "…" + before
	}
	return before, string(runes[start:end]), cut(string(runes[end:]), shownAfter)
}

// cut is the first n characters of s.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
