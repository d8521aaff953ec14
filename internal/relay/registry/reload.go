package registry

import (
	"crypto/tls"
	"os"
	"sync"

	thole "github.com/tholehq/thole"
)

// Reloaded is what files say, read again when they change. A version that cannot be used,
// such as one that is half written, changes nothing: the last one that could be stays.
type Reloaded[T any] struct {
	paths []string
	load  func() (T, error)

	mu    sync.Mutex // guards the rest
	seen  []os.FileInfo
	value T
}

// Reload loads the files a first time.
func Reload[T any](load func() (T, error), paths ...string) (*Reloaded[T], error) {
	r := &Reloaded[T]{paths: paths, load: load}
	r.seen = r.look()
	var err error
	r.value, err = load()
	return r, err
}

// Get returns the value and, once for each version of the files that cannot be used, why.
func (r *Reloaded[T]) Get() (T, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.look()
	if same(now, r.seen) {
		return r.value, nil
	}
	r.seen = now
	value, err := r.load()
	if err == nil {
		r.value = value
	}
	return r.value, err
}

func (r *Reloaded[T]) look() []os.FileInfo {
	out := make([]os.FileInfo, len(r.paths))
	for i, path := range r.paths {
		out[i], _ = os.Stat(path) // nil: missing
	}
	return out
}

func same(a, b []os.FileInfo) bool {
	for i := range a {
		switch {
		case a[i] == nil || b[i] == nil:
			if a[i] != b[i] {
				return false
			}
		case !os.SameFile(a[i], b[i]) || a[i].Size() != b[i].Size() || !a[i].ModTime().Equal(b[i].ModTime()) || a[i].Mode() != b[i].Mode():
			return false
		}
	}
	return true
}

// ReloadTokens is ReadTokens of a file that may change.
func ReloadTokens(path string) (*Reloaded[*Tokens], error) {
	return Reload(func() (*Tokens, error) { return ReadTokens(path) }, path)
}

// ReloadCertificate reads a certificate chain and its key, which are replaced when they
// are renewed.
func ReloadCertificate(cert, key string) (*Reloaded[*tls.Certificate], error) {
	return Reload(func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "load the certificate: %w", err)
		}
		return &pair, nil
	}, cert, key)
}
