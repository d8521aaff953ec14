package s3

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
)

// tries is how often a request is sent whose failure may pass by itself.
const tries = 4

// maxAnswer bounds what is read of an answer that is not an object.
const maxAnswer = 8 << 20

// answerError is what the server said in place of doing it.
type answerError struct {
	Status  int    `xml:"-"`
	Code    string `xml:"Code"`
	Message string `xml:"Message"`
}

func (e *answerError) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("the server answered %d %s", e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// call is one request to the server. Its body, if any, can be sent again when
// it is an io.Seeker.
type call struct {
	method, key string
	query       url.Values
	headers     map[string]string
	body        io.Reader
	size        int64
}

// do sends the call and returns an answer of the 2xx class, whose body the
// caller closes.
func (s *Store) do(ctx context.Context, c call) (*http.Response, error) {
	seeker, again := c.body.(io.Seeker)
	again = again || c.body == nil
	for try, pause := 1, 50*time.Millisecond; ; try, pause = try+1, 4*pause {
		resp, err := s.once(ctx, c)
		if err == nil || !again || try == tries || !passing(err) || ctx.Err() != nil {
			return resp, err
		}
		if seeker != nil {
			if _, e := seeker.Seek(0, io.SeekStart); e != nil {
				return nil, err
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
	}
}

func (s *Store) once(ctx context.Context, c call) (*http.Response, error) {
	var body io.Reader
	if c.body != nil {
		body = io.NopCloser(c.body) // the transport must not close what is sent again
	}
	req, err := http.NewRequestWithContext(ctx, c.method, s.url(c.key, c.query).String(), body)
	if err != nil {
		return nil, err
	}
	req.ContentLength = c.size
	for name, value := range c.headers {
		req.Header.Set(name, value)
	}
	s.signer.header(req, time.Now())
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	answer := &answerError{Status: resp.StatusCode}
	if b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err == nil {
		_ = xml.Unmarshal(b, answer) // a HEAD has none
	}
	return nil, answer
}

// ask sends the call and decodes its answer into result, if there is one.
func (s *Store) ask(ctx context.Context, c call, result any) error {
	resp, err := s.do(ctx, c)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil || result == nil {
		return err
	}
	// An upload that could not be put together is told under a status of 200.
	refused := &answerError{Status: resp.StatusCode}
	if bytes.Contains(b[:min(len(b), 256)], []byte("<Error>")) && xml.Unmarshal(b, refused) == nil && refused.Code != "" {
		return refused
	}
	return xml.Unmarshal(b, result)
}

// url spells the address of a key of the bucket; bucket and key are in the path,
// which every server understands.
func (s *Store) url(key string, query url.Values) *url.URL {
	path := "/" + s.bucket
	if key != "" {
		path += "/" + key
	}
	u := *s.endpoint
	u.Path, u.RawPath, u.RawQuery = path, escape(path, true), canonicalQuery(query)
	return &u
}

// passing reports whether the same request may succeed later.
func passing(err error) bool {
	var answer *answerError
	if !errors.As(err, &answer) {
		return true // nobody answered
	}
	return answer.Status >= 500 && answer.Status != http.StatusNotImplemented || answer.Status == http.StatusTooManyRequests || answer.Code == "RequestTimeout"
}

// failed sorts a server's answer into our classes.
func failed(doing, key string, err error) error {
	var answer answerError
	if a := (*answerError)(nil); errors.As(err, &a) {
		answer = *a
	}
	switch {
	case answer.Code == "NoSuchBucket" || answer.Code == "InvalidAccessKeyId" || answer.Code == "SignatureDoesNotMatch" || answer.Status == http.StatusForbidden:
		return thole.Errorf(thole.CodeUnavailable, "%s: %w", doing, err).WithHint("check objects.bucket and the keys in the configuration")
	case answer.Status == http.StatusNotFound:
		return fmt.Errorf("%s: %w: %s", doing, objects.ErrNotFound, key)
	case answer.Status == http.StatusRequestedRangeNotSatisfiable:
		return thole.Errorf(thole.CodeInvalid, "%s: %w", doing, err)
	}
	return thole.Errorf(thole.CodeUnavailable, "%s: %w", doing, err)
}
