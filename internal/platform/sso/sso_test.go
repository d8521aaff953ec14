package sso_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/platform/sso"
	"github.com/tholehq/thole/internal/unguarded"
)

// once is a session.Store that only knows what was spent.
type once struct {
	session.Store
	mu    sync.Mutex
	spent map[string]bool
}

func (o *once) Spend(_ context.Context, hash string, _ time.Time) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.spent[hash]
	o.spent[hash] = true
	return !was, nil
}

func (o *once) EndIssued(ctx context.Context, hash string, l session.Logout) (bool, []string, error) {
	fresh, err := o.Spend(ctx, hash, l.Expires)
	return fresh, nil, err
}

// provider is one that says whatever a test wants.
type provider struct {
	*httptest.Server
	t         *testing.T
	key       *rsa.PrivateKey
	kid       string
	challenge string // of the code that is out
	nonce     string
	codes     map[string]bool
	change    func(header, claims map[string]any) // of the next token
	forge     func(token string) string
	described map[string]any // differs from the truth
	info      map[string]any
}

func newProvider(t *testing.T) *provider {
	p := &provider{t: t, codes: map[string]bool{}}
	p.rotate("one")
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		d := map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys", "userinfo_endpoint": p.URL + "/me",
			"id_token_signing_alg_values_supported": []string{"RS256"}}
		for k, v := range p.described {
			d[k] = v
		}
		answer(w, d)
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		e := base64.RawURLEncoding.EncodeToString(big.NewInt(int64(p.key.E)).Bytes())
		answer(w, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": p.kid, "n": base64.RawURLEncoding.EncodeToString(p.key.N.Bytes()), "e": e}}})
	})
	mux.HandleFunc("GET /me", func(w http.ResponseWriter, _ *http.Request) { answer(w, p.info) })
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		user, secret, _ := r.BasicAuth()
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		code := r.FormValue("code")
		if user != "thole" || secret != "hush" || !p.codes[code] || base64.RawURLEncoding.EncodeToString(sum[:]) != p.challenge {
			w.WriteHeader(http.StatusBadRequest)
			answer(w, map[string]any{"error": "invalid_grant"})
			return
		}
		delete(p.codes, code)
		now := time.Now().Unix()
		claims := map[string]any{"iss": p.URL, "aud": "thole", "sub": "ada", "nonce": p.nonce, "iat": now, "exp": now + 300, "email": "ada@example.org", "email_verified": true, "groups": []string{"eng"}, "sid": "s1"}
		answer(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": p.token(claims)})
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// keys are made once: each takes half a second.
var keys = sync.OnceValue(func() map[string]*rsa.PrivateKey {
	out := map[string]*rsa.PrivateKey{}
	for _, kid := range []string{"one", "two"} {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		out[kid] = key
	}
	return out
})

func (p *provider) rotate(kid string) { p.key, p.kid = keys()[kid], kid }

// token signs claims, as the test changed them.
func (p *provider) token(claims map[string]any) string {
	header := map[string]any{"alg": "RS256", "kid": p.kid, "typ": "JWT"}
	if p.change != nil {
		p.change(header, claims)
	}
	encode := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			p.t.Error(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	text := encode(header) + "." + encode(claims)
	if header["alg"] == "none" {
		return text + "."
	}
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	if err != nil {
		p.t.Error(err)
	}
	token := text + "." + base64.RawURLEncoding.EncodeToString(sig)
	if p.forge != nil {
		token = p.forge(token)
	}
	return token
}

// visit is what a browser does at the provider: it brings a code back.
func (p *provider) visit(to string) (code, state string) {
	u, err := url.Parse(to)
	if err != nil {
		p.t.Fatal(err)
	}
	q := u.Query()
	if q.Get("code_challenge_method") != "S256" || q.Get("response_type") != "code" || q.Get("redirect_uri") != "http://127.0.0.1:1/auth/oidc/callback" {
		p.t.Errorf("a browser is sent with %v", q)
	}
	p.challenge, p.nonce = q.Get("code_challenge"), q.Get("nonce")
	code = fmt.Sprintf("code-%d", len(p.codes))
	p.codes[code] = true
	return code, q.Get("state")
}

type rig struct {
	*provider
	sessions *session.Manager
	now      time.Time
	cfg      sso.Config
	client   *sso.Client
}

func newRig(t *testing.T, change ...func(*sso.Config)) *rig {
	r := &rig{provider: newProvider(t), now: time.Now()}
	r.sessions = session.New(&once{spent: map[string]bool{}}, func() time.Time { return r.now })
	r.cfg = sso.Config{Issuer: r.URL, ClientID: "thole", Secret: func() (string, error) { return "hush", nil }, Scopes: []string{"openid"}, GroupsClaim: "groups", Page: "http://127.0.0.1:1", Now: func() time.Time { return r.now }}
	for _, c := range change {
		c(&r.cfg)
	}
	r.client = sso.New(r.cfg)
	return r
}

var ctx = context.Background()

// login is a whole one, whatever the provider says.
func (r *rig) login() (sso.Proven, error) {
	f := r.sessions.NewFlow("/")
	to, err := r.client.URL(ctx, f)
	if err != nil {
		return sso.Proven{}, err
	}
	code, state := r.visit(to)
	return r.finish(f.Cookie(), code, state)
}

func (r *rig) finish(cookie, code, state string) (sso.Proven, error) {
	f, err := r.sessions.TakeFlow(ctx, cookie, state)
	if err != nil {
		return sso.Proven{}, err
	}
	return r.client.Finish(ctx, f, sso.Answer{Code: code})
}

// refused: an attack fails, and succeeds in the build without guards.
func refused(t *testing.T, what string, err error) {
	t.Helper()
	if unguarded.Build {
		if err != nil {
			t.Errorf("without guards %s fails too, so that it proves nothing: %v", what, err)
		}
		return
	}
	if code := thole.CodeOf(err); err == nil || code != thole.CodeUnauthorized && code != thole.CodeForbidden {
		t.Errorf("%s: %v", what, err)
	}
}

func TestLogin(t *testing.T) {
	r := newRig(t)
	got, err := r.login()
	if err != nil || got.Subject != "ada" || got.Issuer != r.URL || !got.Verified || got.SID != "s1" || len(got.Groups) != 1 || got.Groups[0] != "eng" {
		t.Fatalf("%+v, %v", got, err)
	}
	r.rotate("two") // unknown keys are asked for at once
	if _, err := r.login(); err != nil {
		t.Errorf("after a rotation: %v", err)
	}
	r.now = r.now.Add(5*time.Minute + 30*time.Second) // clocks differ by less than a minute from what the token allows
	if _, err := r.login(); err != nil {
		t.Errorf("with a clock that goes ahead: %v", err)
	}
	r.now = time.Now()
	// What the token lacks comes from the user's endpoint, of the same user alone.
	r.change = func(_, c map[string]any) { delete(c, "groups"); delete(c, "email") }
	r.info = map[string]any{"sub": "ada", "groups": "ops", "email": "ada@example.org", "email_verified": "true"}
	if got, err := r.login(); err != nil || len(got.Groups) != 1 || got.Groups[0] != "ops" || !got.Verified {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestForgedLoginsAreRefused(t *testing.T) {
	for what, change := range map[string]func(h, c map[string]any){
		"another audience":            func(_, c map[string]any) { c["aud"] = "other" },
		"several audiences":           func(_, c map[string]any) { c["aud"] = []string{"thole", "other"} },
		"another party":               func(_, c map[string]any) { c["azp"] = "other" },
		"another issuer":              func(_, c map[string]any) { c["iss"] = "https://evil.example.org" },
		"another nonce":               func(_, c map[string]any) { c["nonce"] = "other" },
		"no nonce":                    func(_, c map[string]any) { delete(c, "nonce") },
		"no signature":                func(h, _ map[string]any) { h["alg"] = "none" },
		"an expired token":            func(_, c map[string]any) { c["exp"] = time.Now().Add(-2 * time.Minute).Unix() },
		"a token of the future":       func(_, c map[string]any) { c["iat"] = time.Now().Add(5 * time.Minute).Unix() },
		"an unknown key":              func(h, _ map[string]any) { h["kid"] = "other" },
		"a subject without end":       func(_, c map[string]any) { c["sub"] = strings.Repeat("x", 300) },
		"another user's own endpoint": func(_, c map[string]any) { delete(c, "groups") },
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			r.change, r.info = change, map[string]any{"sub": "eve", "groups": []string{"admins"}}
			_, err := r.login()
			refused(t, what, err)
		})
	}
	t.Run("another key", func(t *testing.T) {
		r := newRig(t)
		other := keys()["two"]
		r.forge = func(token string) string {
			text := token[:strings.LastIndex(token, ".")]
			sum := sha256.Sum256([]byte(text))
			sig, _ := rsa.SignPKCS1v15(rand.Reader, other, crypto.SHA256, sum[:])
			return text + "." + base64.RawURLEncoding.EncodeToString(sig)
		}
		_, err := r.login()
		refused(t, "another key", err)
	})
	t.Run("another domain", func(t *testing.T) {
		r := newRig(t, func(c *sso.Config) { c.Domains = []string{"example.org"} })
		if _, err := r.login(); err != nil {
			t.Fatal(err)
		}
		r.change = func(_, c map[string]any) { c["email"] = "ada@example.org.evil.example" }
		_, err := r.login()
		refused(t, "another domain", err)
		r.change = func(_, c map[string]any) { c["email_verified"] = false }
		_, err = r.login()
		refused(t, "an address that nobody verified", err)
	})
}

// The answer to one browser's login is worth nothing in another, or a second time.
func TestAnswersOfOtherBrowsersAreRefused(t *testing.T) {
	r := newRig(t)
	mine, theirs := r.sessions.NewFlow(""), r.sessions.NewFlow("")
	to, err := r.client.URL(ctx, theirs)
	if err != nil {
		t.Fatal(err)
	}
	_, state := r.visit(to)
	_, err = r.sessions.TakeFlow(ctx, mine.Cookie(), state)
	refused(t, "the state of another browser", err)
	to, _ = r.client.URL(ctx, mine)
	code, state := r.visit(to)
	if !unguarded.Build { // their state, fitting their cookie, with my code: the provider asks for my verifier
		if _, err := r.finish(theirs.Cookie(), code, theirs.State()); thole.CodeOf(err) != thole.CodeUnauthorized {
			t.Errorf("a code of another browser: %v", err)
		}
		if _, err := r.sessions.TakeFlow(ctx, "", state); err == nil {
			t.Error("a browser without a login in progress")
		}
	}
	if _, err := r.finish(mine.Cookie(), code, state); err != nil {
		t.Fatal(err)
	}
	_, err = r.sessions.TakeFlow(ctx, mine.Cookie(), state)
	refused(t, "a login that was used", err)
	if _, err := r.client.Finish(ctx, mine, sso.Answer{Code: code}); thole.CodeOf(err) != thole.CodeUnauthorized {
		t.Errorf("a replayed code: %v", err)
	}
	old := r.sessions.NewFlow("")
	r.now = r.now.Add(session.FlowLife)
	if _, err := r.sessions.TakeFlow(ctx, old.Cookie(), old.State()); err == nil {
		t.Error("a login that took too long")
	}
	// RFC 9207: the answer of another provider.
	r.now = time.Now()
	f := r.sessions.NewFlow("")
	to, _ = r.client.URL(ctx, f)
	code, _ = r.visit(to)
	_, err = r.client.Finish(ctx, f, sso.Answer{Code: code, Issuer: "https://evil.example.org"})
	refused(t, "the answer of another provider", err)
}

func TestProviders(t *testing.T) {
	for what, d := range map[string]map[string]any{
		"another name": {"issuer": "https://evil.example.org"}, "keys without TLS": {"jwks_uri": "http://evil.example.org/keys"}, "no token endpoint": {"token_endpoint": ""}, "a script": {"authorization_endpoint": "javascript:alert(1)"},
	} {
		r := newRig(t)
		r.described = d
		if _, err := r.client.URL(ctx, r.sessions.NewFlow("")); thole.CodeOf(err) != thole.CodeUnavailable {
			t.Errorf("a provider with %s: %v", what, err)
		}
	}
	r := newRig(t)
	r.Close()
	if _, err := r.client.URL(ctx, r.sessions.NewFlow("")); thole.CodeOf(err) != thole.CodeUnavailable || thole.HintOf(err) == "" {
		t.Errorf("a provider that is down: %v", err)
	}
	for at, ok := range map[string]bool{"https://id.example.org/realm": true, "http://127.0.0.1:1": true, "http://id.example.org": false, "https://u:p@id.example.org": false, "id.example.org": false, "": false} {
		if err := sso.CheckURL(at); (err == nil) != ok {
			t.Errorf("%q: %v", at, err)
		}
	}
}

func TestForgedLogoutsAreRefused(t *testing.T) {
	r := newRig(t)
	message := func() map[string]any {
		now := time.Now().Unix()
		return map[string]any{"iss": r.URL, "aud": "thole", "sub": "ada", "sid": "s1", "jti": "1", "iat": now, "exp": now + 120, "events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}}
	}
	good := r.token(message())
	over, err := r.client.Ended(ctx, good)
	if err != nil || over.Subject != "ada" || over.SID != "s1" || over.ID != "1" {
		t.Fatalf("%+v, %v", over, err)
	}
	if err := r.sessions.EndIssued(ctx, over); err != nil {
		t.Fatal(err)
	}
	refused(t, "a replayed message", r.sessions.EndIssued(ctx, over))
	for what, change := range map[string]func(h, c map[string]any){
		"another audience": func(_, c map[string]any) { c["aud"] = "other" },
		"another issuer":   func(_, c map[string]any) { c["iss"] = "https://evil.example.org" },
		"no signature":     func(h, _ map[string]any) { h["alg"] = "none" },
		"an expired one":   func(_, c map[string]any) { c["exp"] = time.Now().Add(-2 * time.Minute).Unix() },
		"an unknown key":   func(h, _ map[string]any) { h["kid"] = "other" },
		"one of years":     func(_, c map[string]any) { c["exp"] = time.Now().Add(10000 * time.Hour).Unix() },
	} {
		r.change = change
		_, err := r.client.Ended(ctx, r.token(message()))
		refused(t, "a message with "+what, err)
	}
	for what, change := range map[string]func(h, c map[string]any){ // these the library refuses in any build
		"a nonce, as tokens of logins have": func(_, c map[string]any) { c["nonce"] = "n" },
		"no event":                          func(_, c map[string]any) { delete(c, "events") },
		"nobody":                            func(_, c map[string]any) { delete(c, "sub"); delete(c, "sid") },
		"no id":                             func(_, c map[string]any) { delete(c, "jti") },
	} {
		r.change = change
		if _, err := r.client.Ended(ctx, r.token(message())); thole.CodeOf(err) != thole.CodeUnauthorized {
			t.Errorf("a message with %s: %v", what, err)
		}
	}
}
