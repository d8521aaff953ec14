package dir

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
)

// route is where Handler expects to be mounted.
const route = "/objects/"

// SignGet implements objects.Store.
func (s *Store) SignGet(_ context.Context, key string, ttl time.Duration) (objects.Link, error) {
	return s.sign(http.MethodGet, key, grant{}, ttl)
}

// SignPut implements objects.Store.
func (s *Store) SignPut(_ context.Context, key string, size int64, sum objects.Sum, ttl time.Duration) (objects.Link, error) {
	return s.sign(http.MethodPut, key, grant{size: strconv.FormatInt(size, 10), sum: sum.String()}, ttl)
}

// SignPart implements objects.Parts.
func (s *Store) SignPart(_ context.Context, key, upload string, number int, size int64, sum objects.Sum, ttl time.Duration) (objects.Link, error) {
	g := grant{size: strconv.FormatInt(size, 10), sum: sum.String(), upload: upload, part: strconv.Itoa(number)}
	return s.sign(http.MethodPut, key, g, ttl)
}

// grant is what a link permits besides the key.
type grant struct{ size, sum, upload, part string }

func (s *Store) sign(method, key string, g grant, ttl time.Duration) (objects.Link, error) {
	if err := objects.CheckKey(key); err != nil {
		return objects.Link{}, err
	}
	until := strconv.FormatInt(time.Now().Add(ttl).Unix(), 10)
	q := url.Values{"until": {until}, "sig": {s.signature(method, key, g.size, g.sum, g.upload, g.part, until)}}
	for name, v := range map[string]string{"size": g.size, "sum": g.sum, "upload": g.upload, "part": g.part} {
		if v != "" {
			q.Set(name, v)
		}
	}
	return objects.Link{URL: s.base + route + (&url.URL{Path: key}).EscapedPath() + "?" + q.Encode()}, nil
}

func (s *Store) signature(parts ...string) string {
	mac := hmac.New(sha256.New, s.secret[:])
	for _, p := range parts {
		mac.Write([]byte(strconv.Itoa(len(p)) + ":" + p))
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// Handler serves signed links and nothing else.
func (s *Store) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, ok := strings.CutPrefix(r.URL.Path, route)
		q := r.URL.Query()
		want := s.signature(r.Method, key, q.Get("size"), q.Get("sum"), q.Get("upload"), q.Get("part"), q.Get("until"))
		until, err := strconv.ParseInt(q.Get("until"), 10, 64)
		if !ok || err != nil || !hmac.Equal([]byte(want), []byte(q.Get("sig"))) || time.Now().Unix() > until {
			http.Error(w, "the link is not valid, or not any more", http.StatusForbidden)
			return
		}
		switch r.Method {
		case http.MethodGet:
			s.serveGet(w, r, key)
		case http.MethodPut:
			s.servePut(w, r, key)
		}
	})
}

func (s *Store) serveGet(w http.ResponseWriter, r *http.Request, key string) {
	f, st, err := s.open(key)
	if err != nil {
		httpError(w, err)
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("ETag", `"`+info(key, st).ETag+`"`)
	http.ServeContent(w, r, "", st.ModTime(), f)
}

func (s *Store) servePut(w http.ResponseWriter, r *http.Request, key string) {
	size, err := strconv.ParseInt(r.URL.Query().Get("size"), 10, 64)
	if err != nil {
		http.Error(w, "bad size", http.StatusBadRequest)
		return
	}
	sum, err := objects.ParseSum(r.URL.Query().Get("sum"))
	if err != nil {
		http.Error(w, "bad sum", http.StatusBadRequest)
		return
	}
	if upload := r.URL.Query().Get("upload"); upload != "" {
		number, perr := strconv.Atoi(r.URL.Query().Get("part"))
		if perr != nil {
			http.Error(w, "bad part", http.StatusBadRequest)
			return
		}
		err = s.putPart(r.Context(), upload, number, r.Body, size, sum)
		w.Header().Set("ETag", `"`+sum.String()+`"`)
	} else {
		err = s.put(r.Context(), key, r.Body, size, &sum)
	}
	if err != nil {
		w.Header().Del("ETag")
		httpError(w, err)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func httpError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, objects.ErrNotFound):
		status = http.StatusNotFound
	case thole.CodeOf(err) == thole.CodeInvalid:
		status = http.StatusBadRequest
	}
	http.Error(w, err.Error(), status)
}
