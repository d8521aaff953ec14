//go:build linux

package keys

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/modelsim"
)

// faults are what goes wrong at a model, and how often a CLI tries again is its own
// affair: a service that says not to wait lets it do so at once.
var faults = []struct {
	name, prompt string
	always       bool // not only with THOLE_SOAK
	long         bool // claude would try again for minutes
}{
	{"401", "sim: http 401 that key is bad", true, false},
	{"403", "sim: http 403 that is not for you", true, false},
	{"400", "sim: http 400 no such thing", false, false},
	{"429", "sim: http 429 retry-after=0 slow down", false, true},
	{"500", "sim: http 500 retry-after=0 boom", true, true},
	{"529", "sim: http 529 retry-after=0 type=overloaded_error overloaded", false, true},
	{"cut once", "sim: cut x1 ;; say whole in the end", true, false},
	{"500 once", "sim: http 500 x1 retry-after=0 boom ;; say whole in the end", false, false},
	{"error event", "sim: fail x1 overloaded_error overloaded ;; say whole in the end", false, false},
	{"cut before once", "sim: say cut-before in the end", false, false},
	{"slow", "sim: slow 30ms 4 ;; say a text that takes its time to come", false, false},
	{"late", "sim: wait 3s ;; say late", false, false},
	{"giant", "sim: script giant", true, false},
}

// What goes wrong at a model shows through the gateway as it does without one.
func TestFaultsAreToldAsTheyAre(t *testing.T) {
	t.Parallel()
	soak := os.Getenv("THOLE_SOAK") == "1"
	giant := modelsim.Script{Steps: []modelsim.Step{{Text: strings.Repeat("0123456789abcdef", 1<<14), Chunk: 1 << 20}}} // one event; more would fill the context
	sim := modelsim.New(modelsim.Options{Scripts: map[string]modelsim.Script{"giant": giant}})
	t.Cleanup(func() { _ = sim.Close() })
	model := &witness{handler: cutting(sim)}
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	w := newWorld(t)
	w.agents()
	w.upstreams(server.URL, "env:UPSTREAM_KEY")
	w.begin()
	for _, name := range providers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bare := newDirect(t, name, server.URL)
			through := w.in(t).thread(name, models[name])
			for _, f := range faults {
				if !soak && !f.always || f.long && name == "claude" {
					continue
				}
				began := time.Now()
				want := bare.play(f.prompt)
				middle := time.Now()
				got := through.seen(f.prompt)
				t.Logf("%s: %s without, %s with", f.name, middle.Sub(began).Round(time.Millisecond), time.Since(middle).Round(time.Millisecond))
				if f.name == "401" { // what a service says of a key may repeat it
					want.text, got.text = "", ""
				}
				if normal(want) != normal(got) {
					t.Errorf("%s: through the gateway\n%+v\nwithout it\n%+v", f.name, short(got), short(want))
				}
				if auth := got.code == "auth" || regexp.MustCompile(`(?i)log ?in|/login`).MatchString(got.text); auth != (f.name == "401") && !(f.name == "403" && normal(want) == normal(got)) {
					t.Errorf("%s: %+v", f.name, short(got))
				}
			}
		})
	}
}

// cutting ends one request of each client that says so before a byte of an answer.
func cutting(h http.Handler) http.Handler {
	var done sync.Map
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		who := fmt.Sprint(r.URL.Path, r.Header["Authorization"], r.Header["X-Api-Key"])
		if _, again := done.LoadOrStore(who, true); err != nil || bytes.Contains(body, []byte("cut-before")) && !again {
			panic(http.ErrAbortHandler)
		} else if !bytes.Contains(body, []byte("cut-before")) {
			done.Delete(who)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
	})
}

// normal is what must be the same: addresses, ids and times are not.
func normal(o outcome) outcome {
	for _, r := range [][2]string{
		{`https?://[^\s"',)]+`, "URL"}, {`[0-9a-f]{8}-[0-9a-f-]{27}`, "ID"}, {`req_[A-Za-z0-9]+`, "ID"}, {`\d+(\.\d+)?(ms|s)\b`, "TIME"},
	} {
		o.text = regexp.MustCompile(r[0]).ReplaceAllString(o.text, r[1])
	}
	return o
}

func short(o outcome) outcome {
	o.said = fmt.Sprintf("%.80s…%s (%d)", o.said, o.said[max(0, len(o.said)-120):], len(o.said))
	return o
}

// seen takes a prompt to its end, as a client of the API sees it.
func (th *thread) seen(prompt string) (out outcome) {
	th.Helper()
	id := th.start(prompt)
	got := th.settle(id)
	out.outcome = got.Outcome
	if got.Error != nil {
		out.code, out.status, out.text = got.Error.Code, got.Error.Status, got.Error.Message
	}
	var page struct{ Items []struct{ Kind, Text string } }
	th.call("GET", "/runs/"+id+"/items", nil, &page)
	for _, it := range page.Items {
		if it.Kind == "message" {
			out.said += it.Text
		}
	}
	return out
}
