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
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/strictjson"
)

// lasts is how long a login that is handed in must last yet when a turn begins, soon how
// long one that signs a single call must.
const (
	lasts = time.Hour
	soon  = 5 * time.Minute
)

// renewTimeout bounds one question for new tokens.
const renewTimeout = 30 * time.Second

// ErrNeedsLogin: the service does not take the login or the key any more, and only a
// person can help.
var ErrNeedsLogin = errors.New("the model service does not accept it any more")

// renewal is one login of a CLI and where it is kept.
type renewal struct {
	Login
	name string
	row  table.Login
	at   Kept
}

// fresh returns the login, renewed where stale says that it must be. A service takes a
// refresh token once, so the new one is kept before anything else happens, unless
// another program has put a login there meanwhile: that one is the user's then.
func (r renewal) fresh(ctx context.Context, stale func(members) bool) (members, error) {
	login, err := r.read(ctx)
	if err != nil || !stale(login) {
		return login, err
	}
	release, err := r.at.Hold(ctx)
	if err == nil {
		defer release()
		if login, err = r.read(ctx); err != nil || !stale(login) {
			return login, err
		}
		var now members
		if now, err = r.renew(ctx, login); now != nil {
			login = now
		}
	}
	if err != nil {
		code, hint := thole.CodeUnavailable, "log in with %s again, or see whether the network is there"
		if errors.Is(err, ErrNeedsLogin) {
			code, hint = thole.CodeForbidden, "log in with %s again"
		}
		err = thole.Errorf(code, "renew the login of %s: %w", r.name, err).WithHint(hint, r.name)
	}
	if r.Renewed != nil {
		r.Renewed(r.name, err)
	}
	return login, err
}

// read returns the login, an error that wraps fs.ErrNotExist where there is none.
func (r renewal) read(ctx context.Context) (members, error) {
	data, err := r.at.Read(ctx)
	if err != nil {
		return nil, err
	}
	return decodeLogin(data)
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

// renew puts new tokens of the service where the login is kept, and nothing else. It
// returns what the login is now, nil where that is as it was.
func (r renewal) renew(ctx context.Context, login members) (members, error) {
	way := r.row.Renewal
	used := login.text(way.Refresh)
	if way.URL == "" || used == "" {
		return nil, ErrNeedsLogin
	}
	got, err := r.ask(ctx, way, used, login)
	if err != nil {
		return nil, err
	}
	now, err := r.read(ctx)
	if err != nil {
		return nil, err
	}
	if now.text(way.Refresh) != used {
		return now, nil // the user logged in meanwhile
	}
	now.set(way.Access, got.Access)
	now.set(way.Refresh, cmp.Or(got.Refresh, used))
	if way.ID != "" && got.ID != "" {
		now.set(way.ID, got.ID)
	}
	at := r.now().UTC()
	if way.Expires != "" {
		now.set(way.Expires, json.Number(fmt.Sprint(at.Add(time.Duration(got.Seconds)*time.Second).UnixMilli())))
	}
	if way.Stamp != "" {
		now.set(way.Stamp, at.Format(time.RFC3339Nano))
	}
	data, err := encodeLogin(now)
	if err == nil {
		err = r.at.Write(ctx, data)
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
		switch resp.StatusCode {
		case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden: // what OAuth says of a spent token
			return got, fmt.Errorf("%w: the service answers %s", ErrNeedsLogin, resp.Status)
		}
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
