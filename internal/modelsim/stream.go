package modelsim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// reply is one answer, ready to be written in any of the three forms.
type reply struct {
	nonce string
	conv  *conversation
	step  Step
	calls []toolCall
	usage Usage
	fault *Fault // armed for this attempt
}

// stream writes server-sent events with the pace of the step and springs its
// fault in the middle of the text.
type stream struct {
	w     http.ResponseWriter
	flush *http.ResponseController
	ctx   context.Context
	r     *reply
	chunk int
	delay time.Duration
	sent  int // chunks so far
	trap  int // the chunk after which the fault springs
	named bool
	seq   int
}

// Outcomes of a sprung fault. errCut closes the connection; errFail asks the
// encoder for its error event.
var (
	errCut  = errors.New("connection cut by the script")
	errFail = errors.New("error event asked for by the script")
)

func openStream(ctx context.Context, w http.ResponseWriter, r *reply, pace time.Duration) *stream {
	s := &stream{w: w, flush: http.NewResponseController(w), ctx: ctx, r: r, chunk: r.step.Chunk, delay: pace}
	if s.chunk <= 0 {
		s.chunk = 24
	}
	if r.step.DelayMS > 0 {
		s.delay = time.Duration(r.step.DelayMS) * time.Millisecond
	}
	s.trap = (s.count(r.step.Reasoning) + s.count(r.step.Text)) / 2
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	return s
}

func (s *stream) count(text string) int { return (len([]rune(text)) + s.chunk - 1) / s.chunk }

// event writes one event. Where events are named, the data says the name too.
func (s *stream) event(name string, data map[string]any) error {
	if s.named {
		data["type"] = name
	}
	body, err := json.Marshal(data)
	if err != nil {
		return err
	}
	if name != "" {
		_, err = fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", name, body)
	} else {
		_, err = fmt.Fprintf(s.w, "data: %s\n\n", body)
	}
	if err != nil {
		return err
	}
	return s.flush.Flush()
}

// numbered is event for the Responses API.
func (s *stream) numbered(name string, data map[string]any) error {
	data["sequence_number"] = s.seq
	s.seq++
	return s.event(name, data)
}

// pieces calls emit with each chunk of text, at the pace of the step. The fault
// springs after the chunk in the middle of the text.
func (s *stream) pieces(text string, emit func(string) error) error {
	runes := []rune(text)
	for len(runes) > 0 {
		if s.sent > 0 && s.delay > 0 {
			if err := sleep(s.ctx, s.delay); err != nil {
				return err
			}
		}
		n := min(s.chunk, len(runes))
		if err := emit(string(runes[:n])); err != nil {
			return err
		}
		runes = runes[n:]
		if s.sent++; s.sent > s.trap {
			if err := s.spring(); err != nil {
				return err
			}
		}
	}
	return nil
}

// spring lets the armed fault happen, once.
func (s *stream) spring() error {
	f := s.r.fault
	if f == nil {
		return nil
	}
	s.r.fault = nil
	switch f.Kind {
	case FaultCut:
		return errCut
	case FaultSSE:
		s.r.step.Fault = f
		return errFail
	case FaultHang:
		if f.ForMS == 0 {
			<-s.ctx.Done()
			return s.ctx.Err()
		}
		return sleep(s.ctx, time.Duration(f.ForMS)*time.Millisecond)
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// tokens is the size of a text in tokens, near enough for a usage that no script gave.
func tokens(s string) int {
	if s == "" {
		return 0
	}
	return max(1, len(s)/4)
}
