package executorclient

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
)

// What an executor may say. Its agent may have taken it over, so each answer has a
// bound, and who goes beyond one is not asked again.
const (
	maxHeader = 64 << 10
	maxAnswer = 8 << 20
	maxLine   = 8 << 20 // one event
	maxBatch  = 1 << 20 // events are handed over when they are more bytes than this
	maxModels = 64
	soon      = 5 * time.Minute
	// MaxEvents is how many one run may report.
	MaxEvents = 2_000_000
)

// ErrBeyond: the executor went beyond what it may say.
var ErrBeyond = errors.New("the executor answered beyond its bounds")

func beyond(format string, args ...any) error {
	return thole.Errorf(thole.CodeGone, "%w: "+format, append([]any{ErrBeyond}, args...)...)
}

// stay follows no redirect: the token is for this executor alone, and the owner
// reaches places that an agent does not.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func decode(r io.Reader, out any) error {
	body := &io.LimitedReader{R: r, N: maxAnswer + 1}
	err := strictjson.Read(body, out)
	if body.N == 0 {
		return beyond("more than %d bytes", maxAnswer)
	}
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "decode executor answer: %w", err)
	}
	return nil
}

// readLine reads a line of at most maxLine.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		if len(line)+len(piece) > maxLine {
			return nil, beyond("an event of more than %d bytes", maxLine)
		}
		line = append(line, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
