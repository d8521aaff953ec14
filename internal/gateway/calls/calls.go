// Package calls keeps what agents and models said to one another, where the configuration
// asks for it: one call of the gateway is three files below
// DIR/<thread>/<turn>. Store implements gateway.Recorder; Calls lists what is there, and
// Collect forgets threads that are gone.
//
// It stores bodies only, as the CLI sent and the upstream answered them. Headers, and with
// them every token and key, never reach it. A record is a help and no truth: what cannot
// be written, or goes beyond the bounds, is left out and does not disturb the call.
package calls

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/strictjson"
)

const (
	maxBody   = 8 << 20   // of a request or an answer; the rest is cut off
	maxThread = 256 << 20 // of a thread; later calls are not recorded
	minFile   = 16 << 10  // what a file counts at least: many small ones are as bad as a long one
)

// Store is the records below one directory. Its methods are safe for concurrent use.
type Store struct {
	dir   string
	wants func(gateway.Claim) bool
}

// New returns the records below dir. Calls for which wants is false are not recorded.
func New(dir string, wants func(gateway.Claim) bool) *Store { return &Store{dir: dir, wants: wants} }

// Call is a recorded call.
type Call struct {
	At       time.Time     `json:"at"`
	Route    string        `json:"route"`
	Upstream string        `json:"upstream"`
	Model    string        `json:"model"`
	Path     string        `json:"path"`
	Ended    bool          `json:"ended"` // false while it runs, and when the server died meanwhile
	Status   int           `json:"status,omitempty"`
	Error    string        `json:"error,omitempty"`
	Usage    thole.Usage   `json:"usage"`
	Known    bool          `json:"usage_known"`
	Waited   time.Duration `json:"waited"` // in the gateway's queue, in nanoseconds
	Took     time.Duration `json:"took"`
	Cut      bool          `json:"cut,omitempty"` // a body was longer than what is kept
	// Request and Response are the files that hold the bodies.
	Request  string `json:"request"`
	Response string `json:"response"`
}

const about, request, response = ".json", ".request", ".response"

// Record implements gateway.Recorder.
func (s *Store) Record(c gateway.Call, body []byte) gateway.Recording {
	if !s.wants(c.Claim) || !thole.ValidUUID(string(c.Thread)) || !thole.ValidUUID(string(c.Turn)) {
		return nil
	}
	if size(filepath.Join(s.dir, string(c.Thread)))+int64(len(body)) > maxThread {
		return nil
	}
	dir := filepath.Join(s.dir, string(c.Thread), string(c.Turn))
	if os.MkdirAll(dir, 0o700) != nil {
		return nil
	}
	r := &recording{
		path: filepath.Join(dir, thole.NewID[string](c.At)),
		call: Call{At: c.At.UTC(), Route: c.Route, Upstream: c.Upstream, Model: c.Model, Path: c.Path, Cut: len(body) > maxBody},
	}
	if !r.call.Cut && os.WriteFile(r.path+request, body, 0o600) != nil || r.describe() != nil {
		return nil
	}
	var err error
	if r.answer, err = os.OpenFile(r.path+response, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil
	}
	return r
}

// recording writes one call.
type recording struct {
	path    string
	call    Call
	answer  *os.File
	written int
}

func (r *recording) describe() error {
	text, err := json.Marshal(r.call)
	if err != nil {
		return err
	}
	return atomicfile.Write(r.path+about, text, 0o600)
}

// Write implements gateway.Recording.
func (r *recording) Write(p []byte) (int, error) {
	part := p[:min(len(p), maxBody-r.written)]
	r.call.Cut = r.call.Cut || len(part) < len(p)
	n, err := r.answer.Write(part)
	r.written += n
	if err != nil {
		return n, err
	}
	return len(p), nil
}

// End implements gateway.Recording.
func (r *recording) End(res gateway.Result) {
	_ = r.answer.Close()
	c := &r.call
	c.Ended, c.Status, c.Error, c.Usage, c.Known, c.Waited = true, res.Status, res.Error, res.Usage, res.Known, res.Waited
	c.Upstream, c.Took = res.Upstream, res.EndedAt.Sub(c.At)
	_ = r.describe()
}

// Calls returns the recorded calls of a turn, the oldest first; none when nothing was
// recorded.
func (s *Store) Calls(thread thole.ThreadID, turn thole.TurnID) ([]Call, error) {
	if !thole.ValidUUID(string(thread)) || !thole.ValidUUID(string(turn)) {
		return nil, thole.Errorf(thole.CodeInvalid, "invalid thread or turn id")
	}
	dir := filepath.Join(s.dir, string(thread), string(turn))
	entries, err := os.ReadDir(dir) // sorted by name, and names by time
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Call
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), about)
		if !ok {
			continue
		}
		c, err := read(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func read(path string) (c Call, err error) {
	text, err := os.ReadFile(path + about)
	if err == nil {
		err = strictjson.Unmarshal(text, &c)
	}
	c.Request, c.Response = path+request, path+response
	return c, err
}

// Collect removes the records of threads that gone reports, now and every hour, until ctx
// ends. What gone cannot find out is kept.
func (s *Store) Collect(ctx context.Context, gone func(context.Context, thole.ThreadID) bool) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		s.collect(ctx, gone)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Store) collect(ctx context.Context, gone func(context.Context, thole.ThreadID) bool) {
	entries, _ := os.ReadDir(s.dir) // not there before the first record
	for _, e := range entries {
		if id := thole.ThreadID(e.Name()); thole.ValidUUID(e.Name()) && gone(ctx, id) {
			_ = os.RemoveAll(filepath.Join(s.dir, e.Name())) // the next pass tries again
		}
	}
}

// size is what the files below a directory count.
func size(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				sum += max(info.Size(), minFile)
			}
		}
		return nil
	})
	return sum
}
