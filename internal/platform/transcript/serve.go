package transcript

import (
	"net/http"
	"strings"
	"time"
	"unicode"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/thread"
)

// Path is where the home's socket has a thread's transcript; ?format= says how.
func Path(id thole.ThreadID) string { return "/threads/" + string(id) + "/transcript" }

// Serve answers with a transcript, or calls refuse. A transcript that breaks off ends
// with its connection.
func Serve(w http.ResponseWriter, r *http.Request, threads thread.Service, actor thole.Actor, id thole.ThreadID, refuse func(error)) {
	format, err := ParseFormat(r.URL.Query().Get("format"))
	if err != nil {
		refuse(err)
		return
	}
	th, err := threads.Get(r.Context(), actor, id)
	if err != nil {
		refuse(err)
		return
	}
	late := &lateWriter{w: w, media: format.Media(), name: FileName(th.Title(), format)}
	switch err := Write(r.Context(), threads, actor, id, format, time.Now(), late); {
	case err == nil:
	case !late.begun:
		refuse(err)
	default:
		panic(http.ErrAbortHandler)
	}
}

// FileName is what a browser calls a transcript: letters, digits and dashes.
func FileName(title string, format Format) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	name := strings.Join(words, "-")
	if len(name) > 60 {
		name = strings.TrimRight(name[:60], "-")
	}
	if name == "" {
		name = "thread"
	}
	if format == JSON {
		return name + ".json"
	}
	return name + ".md"
}

// lateWriter answers with the first byte, so that an error before it has its status.
type lateWriter struct {
	w           http.ResponseWriter
	media, name string
	begun       bool
}

func (l *lateWriter) Write(b []byte) (int, error) {
	if !l.begun {
		l.begun = true
		h := l.w.Header()
		h.Set("Content-Type", l.media)
		h.Set("Content-Disposition", `attachment; filename="`+l.name+`"`)
		l.w.WriteHeader(http.StatusOK)
	}
	return l.w.Write(b)
}
