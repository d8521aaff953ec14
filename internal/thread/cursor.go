package thread

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
)

const (
	defaultPage = 50
	maxPage     = 1000
)

// CursorAt is the cursor of a list of items or turns that continues after
// position n: an item's sequence number or a turn's number. Descending lists of turns
// that begin with CursorAt(N+1) show what a snapshot at N contains.
func CursorAt(n uint64) string { return encodeCursor(strconv.FormatUint(n, 10)) }

// ItemsCursor is the cursor of a descending list of the items that a snapshot has
// complete. Those in flight are left out of all its pages, even when they complete
// meanwhile: their reader follows them from the snapshot on.
func (s *Snapshot) ItemsCursor() string {
	at := strconv.FormatUint(s.Seq+1, 10)
	for _, r := range s.Fold.Items {
		if r.Open {
			at += exceptMark + strconv.FormatUint(r.Seq, 10)
		}
	}
	return encodeCursor(at)
}

func encodeCursor(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func decodeCursor(c string) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(c)
	if err != nil {
		return "", errCursor(c)
	}
	return string(b), nil
}

func errCursor(c string) error {
	return thole.Errorf(thole.CodeInvalid, "invalid cursor: %s", c).WithHint("use a cursor that a list of the same kind returned")
}

// A cursor that looks back carries this mark: it walks against the list's own
// direction. Before each position that a list leaves out there is the other one.
const (
	backMark   = "<"
	exceptMark = "!"
)

// excepted are the positions that a cursor leaves out, as they are written in it.
func excepted(cursor string) string {
	s, _ := decodeCursor(cursor)
	_, except, found := strings.Cut(s, exceptMark)
	if !found {
		return ""
	}
	return exceptMark + except
}

// leftOut reports whether excepted has a position.
func leftOut(excepted string, n uint64) bool {
	return excepted != "" && strings.Contains(excepted+exceptMark, exceptMark+strconv.FormatUint(n, 10)+exceptMark)
}

func rangeOf(p PageParams) (q RangeQuery, back bool, err error) {
	q = RangeQuery{Desc: p.Desc, Limit: pageLimit(p.Limit) + 1}
	if p.Cursor == "" {
		return q, false, nil
	}
	s, err := decodeCursor(p.Cursor)
	if err != nil {
		return q, false, err
	}
	s, _, _ = strings.Cut(s, exceptMark)
	s, back = strings.CutPrefix(s, backMark)
	if q.After, err = strconv.ParseUint(s, 10, 63); err != nil {
		return q, false, errCursor(p.Cursor)
	}
	if back {
		q.Desc = !q.Desc
	}
	if q.After == 0 { // after the start, 0 would mean the other end
		if q.Desc {
			q.Limit = 0
		}
	}
	return q, back, nil
}

func pageLimit(n int) int {
	if n <= 0 {
		return defaultPage
	}
	return min(n, maxPage)
}

// paged cuts rows to the limit and makes the cursors to the neighbours. at
// gives a row's position as a cursor without its mark.
func paged[T any](rows []T, limit int, p PageParams, back bool, at func(T) string) Page[T] {
	more := len(rows) > limit
	if more {
		rows = rows[:limit]
	}
	if back {
		reversed := make([]T, len(rows))
		for i, r := range rows {
			reversed[len(rows)-1-i] = r
		}
		rows = reversed
	}
	page := Page[T]{Items: rows}
	if len(rows) == 0 {
		return page
	}
	first, last := encodeCursor(backMark+at(rows[0])), encodeCursor(at(rows[len(rows)-1]))
	if back {
		page.Next = last
		if more {
			page.Back = first
		}
		return page
	}
	if more {
		page.Next = last
	}
	if p.Cursor != "" {
		page.Back = first
	}
	return page
}

// pinMark is before the key of a pinned thread.
const pinMark = "p"

func threadKey(created bool) func(fold.Thread) string {
	return func(t fold.Thread) string {
		when, mark := t.Updated, ""
		if created {
			when = t.Created
		}
		if t.Pinned {
			mark = pinMark
		}
		return mark + strconv.FormatInt(thole.Millis(when), 10) + "/" + string(t.ID)
	}
}

func parseThreadKey(c string) (when time.Time, id thole.ThreadID, pinned, back bool, err error) {
	s, err := decodeCursor(c)
	if err != nil {
		return time.Time{}, "", false, false, err
	}
	s, back = strings.CutPrefix(s, backMark)
	s, pinned = strings.CutPrefix(s, pinMark)
	ms, rest, ok := strings.Cut(s, "/")
	n, perr := strconv.ParseInt(ms, 10, 64)
	if !ok || perr != nil || n <= 0 || !thole.ValidUUID(rest) {
		return time.Time{}, "", false, false, errCursor(c)
	}
	return thole.FromMillis(n), thole.ThreadID(rest), pinned, back, nil
}
