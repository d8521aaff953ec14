package provider

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/strictjson"
)

// lasts is how long a login must last yet when a turn begins.
const lasts = time.Hour

// renewTimeout bounds one question for new tokens.
const renewTimeout = 30 * time.Second

// lasting returns a login that lasts, the one it was given or a renewed one. A service
// takes a refresh token once, so the new one goes into the user's file before anything
// else happens, unless another program has put a login there meanwhile: that one is
// the user's then.
func (l Login) lasting(ctx context.Context, name string, s table.Login, login members) (members, error) {
	if !l.ends(s.Renewal, login, lasts) {
		return login, nil
	}
	path := l.file(s)
	release, err := hold(ctx, path, s.Renewal.Lock)
	if err == nil {
		defer release()
		if login, err = readLogin(path); err != nil || !l.ends(s.Renewal, login, lasts) {
			return login, err
		}
		var now members
		if now, err = l.renew(ctx, s.Renewal, path, login); now != nil {
			login = now
		}
	}
	if err != nil {
		err = thole.Errorf(thole.CodeUnavailable, "renew the login of %s: %w", name, err).WithHint("log in with %s again, or see whether the network is there", name)
		if l.ends(s.Renewal, login, 0) {
			return nil, err
		}
	}
	if l.Renewed != nil {
		l.Renewed(name, err)
	}
	return login, nil
}

// ends reports whether a login that can be renewed is over in some time.
func (l Login) ends(r table.Renewal, login members, in time.Duration) bool {
	if r.URL == "" || login.text(r.Refresh) == "" {
		return false
	}
	end := endOf(r, login)
	return !end.IsZero() && end.Before(l.now().Add(in))
}

// endOf is when a login's access token ends, zero where nothing says so.
func endOf(r table.Renewal, login members) (end time.Time) {
	if r.Expires == "" {
		end = tokenEnd(login.text(r.Access))
	} else if n, ok := login.get(r.Expires).(json.Number); ok {
		ms, _ := n.Int64()
		end = time.UnixMilli(ms)
	}
	return end
}

// tokenEnd is when a token says that it ends, zero for one that does not say.
func tokenEnd(token string) (end time.Time) {
	var claims struct {
		End int64 `json:"exp"`
	}
	if parts := strings.Split(token, "."); len(parts) == 3 {
		if raw, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
			_ = strictjson.Unmarshal(raw, &claims)
		}
	}
	if claims.End > 0 {
		end = time.Unix(claims.End, 0)
	}
	return end
}

// renew puts new tokens of the service into the user's file, and nothing else. It
// returns what the user's login is now, nil where that is as it was.
func (l Login) renew(ctx context.Context, r table.Renewal, path string, login members) (members, error) {
	used := login.text(r.Refresh)
	got, err := l.ask(ctx, r, used, login)
	if err != nil {
		return nil, err
	}
	now, err := readLogin(path)
	if err != nil {
		return nil, err
	}
	if now.text(r.Refresh) != used {
		return now, nil // the user logged in meanwhile
	}
	now.set(r.Access, got.Access)
	now.set(r.Refresh, cmp.Or(got.Refresh, used))
	if r.ID != "" && got.ID != "" {
		now.set(r.ID, got.ID)
	}
	at := l.now().UTC()
	if r.Expires != "" {
		now.set(r.Expires, json.Number(fmt.Sprint(at.Add(time.Duration(got.Seconds)*time.Second).UnixMilli())))
	}
	if r.Stamp != "" {
		now.set(r.Stamp, at.Format(time.RFC3339Nano))
	}
	data, err := encodeLogin(now)
	if err == nil {
		err = atomicfile.Write(path, data, 0o600)
	}
	return now, err
}

type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	ID      string `json:"id_token"`
	Seconds int64  `json:"expires_in"`
}

// ask asks the service for new tokens, as the CLI itself would.
func (l Login) ask(ctx context.Context, r table.Renewal, refresh string, login members) (got tokens, err error) {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	body := map[string]string{"grant_type": "refresh_token", "refresh_token": refresh, "client_id": cmp.Or(login.text(r.ClientID), r.Client)}
	if r.Reason != "" {
		body["refresh_reason"] = r.Reason
	}
	if scopes, ok := login.get(r.Scopes).([]any); ok {
		var all []string
		for _, s := range scopes {
			all = append(all, fmt.Sprint(s))
		}
		body["scope"] = strings.Join(all, " ")
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return got, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, cmp.Or(l.getenv(r.Variable), r.URL), bytes.NewReader(raw))
	if err != nil {
		return got, err
	}
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if l.Client != nil {
		client.Transport = l.Client.Transport
	}
	resp, err := client.Do(req)
	if err != nil {
		return got, err
	}
	defer resp.Body.Close()
	answer := io.LimitReader(resp.Body, maxLogin)
	if resp.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, answer)
		return got, fmt.Errorf("the service answers %s", resp.Status)
	}
	if err := strictjson.Read(answer, &got); err != nil {
		return got, fmt.Errorf("read the service's answer: %w", err)
	}
	if got.Access == "" || r.Expires != "" && got.Seconds <= 0 {
		return got, errors.New("the service answers without a token that lasts")
	}
	return got, nil
}
