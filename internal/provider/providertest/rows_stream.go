package providertest

import (
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

func streamRows() []Row {
	return []Row{
		together("text and reasoning", func(b *Bench) {
			r := b.Play(b.Open(), "sim: think weigh it well ;; say one two three four")
			b.outcome(r, thole.OutcomeCompleted)
			if got := r.Text(); got != "one two three four" {
				b.Errorf("text %q", got)
			}
			var thought string
			for _, i := range r.Items(event.ItemReasoning) {
				thought += i.Text + i.Summary
			}
			if !strings.Contains(thought, "weigh it well") {
				b.Errorf("reasoning %q", thought)
			}
			if len(r.Of(event.ThreadUpdated)) == 0 || len(r.Of(event.StepStarted)) == 0 {
				b.Errorf("no session or step event:\n%s", r)
			}
		}),
		together("text streams", func(b *Bench) {
			r := b.Play(b.Open(), "sim: slow 30ms 4 ;; say "+strings.Repeat("word ", 40)+"end")
			b.outcome(r, thole.OutcomeCompleted)
			parts := 0
			for _, e := range r.Of(event.ItemDelta) {
				if e.Stream == event.StreamText {
					parts++
				}
			}
			if parts < 3 { // it is sent in fifty
				b.Errorf("the message came in %d parts; events:\n%s", parts, r)
			}
			if !strings.HasSuffix(r.Text(), "end") {
				b.Errorf("text %q", r.Text())
			}
		}),
		together("several turns in one session", func(b *Bench) {
			s := b.Open()
			for _, word := range []string{"first", "second", "third"} {
				r := b.Play(s, "sim: say "+word)
				if r.Text() != word {
					b.Errorf("text %q, want %q", r.Text(), word)
				}
			}
		}),
		alone("usage equals the scripted numbers", func(b *Bench) {
			s := b.Open()
			want := func(r Record, in, cached, out, reasoning int64, last thole.Tokens) {
				b.Helper()
				if b.degraded("usage", b.Info.Capabilities.Usage) {
					return
				}
				u := r.Usage()
				if u.Input != in || u.CacheRead != cached || u.Output+u.Reasoning != out+reasoning {
					b.Errorf("usage %+v, want input %d, cached %d, output and reasoning %d", u, in, cached, out+reasoning)
				}
				if u.Last != nil && (u.Last.Input != last.Input || u.Last.CacheRead != last.CacheRead || u.Last.Output+u.Last.Reasoning != last.Output+last.Reasoning) {
					b.Errorf("the last call used %+v, want %+v", *u.Last, last)
				}
				if b.Info.Capabilities.Cost.OK() && u.CostMicros == nil {
					b.Error("no cost")
				}
			}
			want(b.Play(s, "sim: usage in=100 cached=20 out=30 reasoning=5 ;; say hi"), 100, 20, 30, 5, thole.Tokens{Input: 100, CacheRead: 20, Output: 30, Reasoning: 5})
			want(b.Play(s, "sim: usage in=7 out=3 ;; run true ;; usage in=11 cached=2 out=4 ;; say hi"), 18, 2, 7, 0, thole.Tokens{Input: 11, CacheRead: 2, Output: 4})
			_ = s.Close()
			again := b.Open(Resume(s.NativeID()))
			want(b.Play(again, "sim: usage in=1000 out=10 ;; say hi"), 1000, 0, 10, 0, thole.Tokens{Input: 1000, Output: 10})
		}),
	}
}

// outcome asserts how a turn ended.
func (b *Bench) outcome(r Record, want thole.Outcome) {
	b.Helper()
	if r.Outcome() != want {
		b.Fatalf("outcome %q, want %q; events:\n%s", r.Outcome(), want, r)
	}
}

// degraded asserts that a capability which is not validated says what happens
// instead, and reports whether it is not validated.
func (b *Bench) degraded(field string, c provider.Capability) bool {
	b.Helper()
	if c.OK() {
		return false
	}
	if b.Info.Capabilities.Notes[field] == "" {
		b.Errorf("capability %s is %s without a declared degradation", field, c)
	}
	return true
}
