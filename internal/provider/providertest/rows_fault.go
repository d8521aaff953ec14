package providertest

import (
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

func faultRows() []Row {
	fault := func(name, directive string, retried bool, codes ...thole.ErrorCode) Row {
		return together(name, func(b *Bench) {
			if name == "context overflow" && b.Harness.Overflow != "" {
				directive = b.Harness.Overflow
			}
			b.fault(directive, retried, codes...)
		})
	}
	return []Row{
		fault("API 401", "http 401 bad key", false, thole.ErrAuth),
		fault("API 429", "http 429 slow down", true, thole.ErrRateLimit),
		fault("API 500", "http 500 boom", true, thole.ErrOverloaded),
		fault("API 400", "http 400 no such thing", false, thole.ErrBadRequest),
		fault("context overflow", "http 400 type=context_length_exceeded the prompt is longer than the context window", false, thole.ErrContextTooLong),
		fault("cut stream", "cut ;; say never whole", true, thole.ErrNetwork, thole.ErrOverloaded),
		together("hung stream", func(b *Bench) {
			s := b.Open()
			t := b.Start(s, "sim: hang ;; say half")
			if b.Sim == nil {
				t.Until("step", func(e event.Event) bool { return e.Kind == event.StepStarted })
			} else {
				b.awaitModel("sim: hang")
			}
			began := time.Now()
			t.Stop()
			b.outcome(t.Wait(), thole.OutcomeInterrupted)
			if d := time.Since(began); d > 20*time.Second {
				b.Errorf("stopping took %v", d)
			}
			b.outcome(b.Play(s, "sim: say next"), thole.OutcomeCompleted)
		}),
		together("a retry that succeeds", func(b *Bench) {
			if b.Sim == nil {
				return
			}
			r := b.Play(b.Open(), "sim: usage in=10 out=5 ;; http 500 x1 boom ;; say fine in the end")
			b.outcome(r, thole.OutcomeCompleted)
			if r.Text() != "fine in the end" {
				b.Errorf("text %q; events:\n%s", r.Text(), r)
			}
			if u := r.Usage(); b.Info.Capabilities.Usage.OK() && (u.Input != 10 || u.Output+u.Reasoning != 5) {
				b.Errorf("usage %+v", u)
			}
		}),
		together("a cut stream that is repeated", func(b *Bench) {
			if b.Sim == nil {
				return
			}
			r := b.Play(b.Open(), "sim: usage in=12 out=7 ;; cut x1 ;; say this text is told once and whole")
			b.outcome(r, thole.OutcomeCompleted)
			if n := strings.Count(r.Text(), "this text is told"); n != 1 {
				b.Errorf("told %d times: %q; events:\n%s", n, r.Text(), r)
			}
			in, out := int64(12), int64(7)
			if b.Harness.CountsCut && len(r.Of(event.StepReset)) > 0 {
				in, out = 24, 8 // the cut call had begun, and reported one token so far
			}
			if u := r.Usage(); b.Info.Capabilities.Usage.OK() && (u.Input != in || u.Output+u.Reasoning != out) {
				b.Errorf("usage %+v, want %d and %d; events:\n%s", u, in, out, r)
			}
		}),
	}
}

// fault expects a turn to fail with one of codes, and the next one to work.
func (b *Bench) fault(directive string, retried bool, codes ...thole.ErrorCode) {
	b.Helper()
	s := b.Open()
	long := retried && b.Harness.LongRetries
	// A service that says not to wait lets a CLI repeat at once, and to the end.
	status, hasty := strings.CutPrefix(directive, "http ")
	if hasty = hasty && long; hasty {
		code, words, _ := strings.Cut(status, " ")
		directive = "http " + code + " retry-after=0 " + words
	}
	t := b.Start(s, "sim: "+directive)
	var got *thole.TurnError
	if long && !hasty {
		e := t.Until("retry", func(e event.Event) bool { return e.Kind == event.ErrorReported })
		if got = e.Error; !got.Retrying {
			b.Errorf("the first error is final: %+v", got)
		}
		t.Stop()
		b.outcome(t.Wait(), thole.OutcomeInterrupted)
	} else {
		r := t.Wait()
		b.outcome(r, thole.OutcomeFailed)
		got = r.Error()
		if first := r.Of(event.ErrorReported); hasty && (len(first) == 0 || !first[0].Error.Retrying || !strings.HasPrefix(status, strconv.Itoa(got.Status))) {
			b.Errorf("no retry was reported, or not the status %s; events:\n%s", status, r)
		}
	}
	ok := false
	for _, c := range codes {
		ok = ok || got.Code == c
	}
	if !ok || got.Message == "" || got.Hint == "" {
		b.Errorf("error %+v, want a code of %v", got, codes)
	}
	b.outcome(b.Play(s, "sim: say next"), thole.OutcomeCompleted)
}
