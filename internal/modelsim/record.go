package modelsim

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"
)

// maxBody bounds a request; maxRecorded bounds what is kept of them, oldest out.
const (
	maxBody     = 64 << 20
	maxRecorded = 2000
)

// Request is one recorded request and how it was answered.
type Request struct {
	Time         time.Time       `json:"time"`
	Method       string          `json:"method"`
	Path         string          `json:"path"`
	Header       http.Header     `json:"-"` // holds keys
	API          string          `json:"api,omitempty"`
	Kind         string          `json:"kind"`
	Model        string          `json:"model,omitempty"`
	Conversation string          `json:"conversation,omitempty"`
	Prompt       string          `json:"prompt,omitempty"`
	Step         int             `json:"step"`
	Stream       bool            `json:"stream"`
	Tools        []string        `json:"tools,omitempty"`
	Body         json.RawMessage `json:"body,omitempty"`
}

func (s *Sim) record(rec Request, r *http.Request, body []byte) {
	rec.Time, rec.Method, rec.Path, rec.Header = time.Now(), r.Method, r.URL.Path, r.Header.Clone()
	if json.Valid(body) {
		rec.Body = body
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, rec)
	if over := len(s.requests) - maxRecorded; over > 0 {
		s.requests = slices.Delete(s.requests, 0, over)
	}
	close(s.arrived)
	s.arrived = make(chan struct{})
}

// Requests returns what was asked so far, oldest first.
func (s *Sim) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Turns returns the requests that were a model turn of some conversation: not
// side requests and not other paths.
func (s *Sim) Turns() []Request {
	return slices.DeleteFunc(s.Requests(), func(r Request) bool { return r.Kind != KindScript && r.Kind != KindCanned })
}

// Conversations counts model turns by conversation.
func (s *Sim) Conversations() map[string]int {
	counts := map[string]int{}
	for _, r := range s.Turns() {
		counts[r.Conversation]++
	}
	return counts
}

// Await returns the first recorded request that match accepts, waiting for it.
func (s *Sim) Await(ctx context.Context, match func(Request) bool) (Request, error) {
	for {
		s.mu.Lock()
		arrived := s.arrived
		for _, r := range s.requests {
			if match(r) {
				s.mu.Unlock()
				return r, nil
			}
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return Request{}, fmt.Errorf("await model request: %w", context.Cause(ctx))
		case <-arrived:
		}
	}
}

func (c *conversation) toolNames() []string {
	names := make([]string, 0, len(c.tools))
	for name := range c.tools {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// readBody reads a request body, decompressed and bounded.
func readBody(r *http.Request) ([]byte, error) {
	var src io.Reader = r.Body
	switch enc := r.Header.Get("Content-Encoding"); enc {
	case "", "identity":
	case "gzip":
		zr, err := gzip.NewReader(src)
		if err != nil {
			return nil, fmt.Errorf("read body: %w", err)
		}
		defer func() { _ = zr.Close() }()
		src = zr
	case "zstd":
		zr, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, fmt.Errorf("read body: %w", err)
		}
		defer zr.Close()
		src = zr
	default:
		return nil, fmt.Errorf("read body: unknown encoding %q", enc)
	}
	var buf bytes.Buffer
	n, err := io.Copy(&buf, io.LimitReader(src, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	if n > maxBody {
		return nil, fmt.Errorf("read body: larger than %d bytes", maxBody)
	}
	return buf.Bytes(), nil
}
