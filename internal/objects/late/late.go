// Package late is an object store that may be away: it is opened when it is first
// needed and again after a look found it unusable. It keeps nothing of its own.
package late

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/tholehq/thole/internal/objects"
)

// Backend is a store that can be opened late.
type Backend interface {
	objects.Store
	objects.Parts
	// Check tries whether the store can be used.
	Check(ctx context.Context) error
	Close() error
}

// Store implements objects.Store and objects.Parts.
type Store struct {
	open func() (Backend, error)

	mu   sync.Mutex // guards have
	have Backend
}

var (
	_ objects.Store = (*Store)(nil)
	_ objects.Parts = (*Store)(nil)
)

// New makes a store that open opens. It opens nothing yet.
func New(open func() (Backend, error)) *Store { return &Store{open: open} }

func (s *Store) get() (Backend, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.have == nil {
		b, err := s.open()
		if err != nil {
			return nil, err
		}
		s.have = b
	}
	return s.have, nil
}

// Check says whether the store can be used now. One that cannot is opened again the
// next time: a directory that came back is another one.
func (s *Store) Check(ctx context.Context) error {
	b, err := s.get()
	if err != nil {
		return err
	}
	if err = b.Check(ctx); err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.have == b {
		s.have = nil
		_ = b.Close()
	}
	return err
}

// Close releases the store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.have == nil {
		return nil
	}
	return s.have.Close()
}

// Handler serves the links of a store that has a handler.
func (s *Store) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := s.get()
		served, ok := b.(interface{ Handler() http.Handler })
		if err != nil || !ok {
			http.Error(w, objects.ErrAway.Error(), http.StatusServiceUnavailable)
			return
		}
		served.Handler().ServeHTTP(w, r)
	})
}

// Sweep removes what uploads left behind in a store that keeps it.
func (s *Store) Sweep(before time.Time) error {
	b, err := s.get()
	if sweeper, ok := b.(interface{ Sweep(time.Time) error }); err == nil && ok {
		err = sweeper.Sweep(before)
	}
	return err
}

// Put implements objects.Store.
func (s *Store) Put(ctx context.Context, key string, body io.Reader, size int64) error {
	b, err := s.get()
	if err != nil {
		return err
	}
	return b.Put(ctx, key, body, size)
}

// Get implements objects.Store.
func (s *Store) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	b, err := s.get()
	if err != nil {
		return nil, err
	}
	return b.Get(ctx, key, off, n)
}

// Stat implements objects.Store.
func (s *Store) Stat(ctx context.Context, key string) (objects.Info, error) {
	b, err := s.get()
	if err != nil {
		return objects.Info{}, err
	}
	return b.Stat(ctx, key)
}

// List implements objects.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, error) {
	b, err := s.get()
	if err != nil {
		return nil, err
	}
	return b.List(ctx, prefix, after, limit)
}

// Delete implements objects.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	b, err := s.get()
	if err != nil {
		return err
	}
	return b.Delete(ctx, key)
}

// SignGet implements objects.Store.
func (s *Store) SignGet(ctx context.Context, key string, ttl time.Duration) (objects.Link, error) {
	b, err := s.get()
	if err != nil {
		return objects.Link{}, err
	}
	return b.SignGet(ctx, key, ttl)
}

// SignPut implements objects.Store.
func (s *Store) SignPut(ctx context.Context, key string, size int64, sum objects.Sum, ttl time.Duration) (objects.Link, error) {
	b, err := s.get()
	if err != nil {
		return objects.Link{}, err
	}
	return b.SignPut(ctx, key, size, sum, ttl)
}

// BeginParts implements objects.Parts.
func (s *Store) BeginParts(ctx context.Context, key string) (string, error) {
	b, err := s.get()
	if err != nil {
		return "", err
	}
	return b.BeginParts(ctx, key)
}

// SignPart implements objects.Parts.
func (s *Store) SignPart(ctx context.Context, key, upload string, number int, size int64, sum objects.Sum, ttl time.Duration) (objects.Link, error) {
	b, err := s.get()
	if err != nil {
		return objects.Link{}, err
	}
	return b.SignPart(ctx, key, upload, number, size, sum, ttl)
}

// EndParts implements objects.Parts.
func (s *Store) EndParts(ctx context.Context, key, upload string, parts []objects.Part) error {
	b, err := s.get()
	if err != nil {
		return err
	}
	return b.EndParts(ctx, key, upload, parts)
}

// AbortParts implements objects.Parts.
func (s *Store) AbortParts(ctx context.Context, key, upload string) error {
	b, err := s.get()
	if err != nil {
		return err
	}
	return b.AbortParts(ctx, key, upload)
}
