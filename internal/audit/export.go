package audit

import (
	"bufio"
	"errors"
	"io"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
)

// Closing is the last line of an export.
type Closing struct {
	Head *SignedHead `json:"head"`
}

// maxLine bounds a line of an export: no field of a link is longer than maxField.
const maxLine = 1 << 20

// VerifyExport reads an export, a link to a line and a signed head at the end, and judges
// it without a store. More heads, kept from earlier, may be given.
func VerifyExport(r io.Reader, heads []SignedHead, key string) (Report, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	var links []Link
	closed := false
	for n := 1; lines.Scan(); n++ {
		if closed {
			return Report{}, thole.Errorf(thole.CodeInvalid, "line %d is after the signed head, which is the end of an export", n)
		}
		var l struct {
			Link
			Closing
		}
		err := strictjson.Unmarshal(lines.Bytes(), &l)
		if err == nil && l.Head != nil {
			heads, closed = append(heads, *l.Head), true
			continue
		}
		if err != nil || l.Seq == 0 {
			return Report{}, thole.Errorf(thole.CodeInvalid, "line %d is no link of an audit chain", n).WithHint("thole audit export writes one")
		}
		links = append(links, l.Link)
	}
	if err := lines.Err(); err != nil {
		return Report{}, thole.Errorf(thole.CodeInvalid, "read export: %w", err)
	}
	if !closed {
		return Report{}, thole.Errorf(thole.CodeInvalid, "read export: %w", errors.New("it has no signed head at its end: it was cut off")).WithHint("export it again with: thole audit export")
	}
	w := newWalk(heads, key)
	for _, l := range links {
		w.add(l)
	}
	return w.end(), nil
}
