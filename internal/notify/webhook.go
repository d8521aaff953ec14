package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/version"
)

// SignatureHeader has "sha256=" and the HMAC-SHA256 of the body, in hexadecimal digits.
const SignatureHeader = "X-Thole-Signature"

const tries = 3

// Webhook posts notices to a URL. What fails for a while is tried again.
func Webhook(to, secret string) Target {
	return webhook(to, secret, 5*time.Second, backoff.Policy{Min: time.Second, Max: 4 * time.Second, Jitter: backoff.Half})
}

func webhook(to, secret string, most time.Duration, pause backoff.Policy) Target {
	client := &http.Client{Timeout: most, CheckRedirect: stay}
	return Target{Name: "webhook", Send: func(ctx context.Context, n Notice) (err error) {
		body := n.body()
		for range pause.Tries(ctx, tries) {
			var again bool
			if again, err = post(ctx, client, to, secret, body); !again {
				return err
			}
		}
		return err
	}}
}

// stay follows only what keeps the request as it is, on the same host.
func stay(next *http.Request, before []*http.Request) error {
	first := before[0].URL
	if next.Method != http.MethodPost || next.URL.Host != first.Host || next.URL.Scheme != first.Scheme || len(before) > 3 {
		return http.ErrUseLastResponse
	}
	return nil
}

// post reports whether another try may help. Its errors do not have the URL, which may
// hold a secret.
func post(ctx context.Context, client *http.Client, to, secret string, body []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return false, errors.New("notify.webhook is no URL")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "thole/"+version.Version)
	if secret != "" {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		req.Header.Set(SignatureHeader, "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	resp, err := client.Do(req)
	var bare *url.Error
	if errors.As(err, &bare) {
		return true, fmt.Errorf("%s: %w", req.URL.Host, bare.Err)
	}
	if err != nil {
		return true, err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection serves again
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return false, nil
	case code >= 300 && code < 400:
		return false, fmt.Errorf("%s redirects elsewhere (%d), which is not followed", req.URL.Host, code)
	default:
		return code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout, fmt.Errorf("%s answered %d", req.URL.Host, code)
	}
}
