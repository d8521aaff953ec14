package transport_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/transport"
)

func TestParseListen(t *testing.T) {
	for in, want := range map[string]string{
		"stdio": "stdio://", "stdio://": "stdio://", "off": "off",
		"unix://": "unix://", "unix:///run/a b.sock": "unix:///run/a b.sock",
		"ws://127.0.0.1:0": "ws://127.0.0.1:0", "ws://[::1]:80/": "ws://[::1]:80",
		"ws://localhost:80": "", "ws://127.0.0.1": "", "ws://:80": "", "tcp://1.2.3.4:5": "", "": "", "ws://127.0.0.1:80/x": "",
	} {
		a, err := transport.ParseListen(in)
		if want == "" {
			if thole.CodeOf(err) != thole.CodeInvalid || thole.HintOf(err) == "" {
				t.Errorf("%q: %v %v", in, a, err)
			}
		} else if err != nil || a.String() != want {
			t.Errorf("%q: %v %v", in, a, err)
		}
	}
}

func file(t *testing.T, content string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPermit(t *testing.T) {
	token, err := transport.NewAuth(transport.AuthOptions{Mode: transport.ModeCapability, TokenFile: file(t, " tok\n")})
	if err != nil {
		t.Fatal(err)
	}
	none, err := transport.NewAuth(transport.AuthOptions{Mode: transport.ModeNone})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		addr string
		auth *transport.Auth
		code thole.Code
	}{
		{"ws://127.0.0.1:0", nil, thole.CodeForbidden},
		{"ws://127.0.0.1:0", none, ""},
		{"ws://[::1]:0", none, ""},
		{"ws://[::ffff:127.0.0.1]:0", none, ""},
		{"ws://127.0.0.1:0", token, ""},
		{"ws://0.0.0.0:0", none, thole.CodeForbidden},
		{"ws://[::]:0", none, thole.CodeForbidden},
		{"ws://0.0.0.0:0", token, ""},
		{"unix:///x", nil, ""},
		{"unix:///x", token, thole.CodeInvalid},
		{"stdio", token, thole.CodeInvalid},
		{"stdio", none, ""},
	} {
		a, err := transport.ParseListen(tc.addr)
		if err != nil {
			t.Fatal(err)
		}
		if err := tc.auth.Permit(a); thole.CodeOf(err) != tc.code {
			t.Errorf("%s: %v, want %s", tc.addr, err, tc.code)
		}
	}
	if _, err := transport.Listen(mustParse(t, "ws://127.0.0.1:0"), nil); thole.CodeOf(err) != thole.CodeForbidden {
		t.Error(err)
	}
	l, err := transport.Listen(mustParse(t, "ws://127.0.0.1:0"), none)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, err = transport.Listen(mustParse(t, "ws://"+l.Addr().(*net.TCPAddr).String()), none)
	if thole.CodeOf(err) != thole.CodeUnavailable || !strings.Contains(err.Error(), "in use") {
		t.Error(err)
	}
}

func mustParse(t *testing.T, s string) transport.Address {
	t.Helper()
	a, err := transport.ParseListen(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestBadFlags(t *testing.T) {
	tok, short, empty := file(t, "tok"), file(t, "short"), file(t, " \n")
	for _, o := range []transport.AuthOptions{
		{Mode: "magic"},
		{TokenFile: tok},
		{Mode: "none", SecretFile: tok},
		{Mode: transport.ModeCapability},
		{Mode: transport.ModeCapability, TokenFile: tok, TokenSHA256: strings.Repeat("a", 64)},
		{Mode: transport.ModeCapability, TokenSHA256: "abc"},
		{Mode: transport.ModeCapability, TokenFile: empty},
		{Mode: transport.ModeCapability, TokenFile: tok + "-missing"},
		{Mode: transport.ModeCapability, TokenFile: tok, Issuer: "x"},
		{Mode: transport.ModeSignedBearer},
		{Mode: transport.ModeSignedBearer, SecretFile: short},
		{Mode: transport.ModeSignedBearer, SecretFile: tok, TokenFile: tok},
	} {
		if a, err := transport.NewAuth(o); a != nil || thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func sign(secret, header, claims string) string {
	e := base64.RawURLEncoding
	body := e.EncodeToString([]byte(header)) + "." + e.EncodeToString([]byte(claims))
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(body))
	return body + "." + e.EncodeToString(m.Sum(nil))
}

func TestJWT(t *testing.T) {
	secret := strings.Repeat("k", 32)
	auth, err := transport.NewAuth(transport.AuthOptions{
		Mode: transport.ModeSignedBearer, SecretFile: file(t, secret+"\n"), Issuer: "me", Audience: "you",
		Now: func() time.Time { return time.Unix(1000, 0) },
	})
	if err != nil {
		t.Fatal(err)
	}
	const h = `{"alg":"HS256","typ":"JWT"}`
	for _, tc := range []struct{ token, want string }{
		{sign(secret, h, `{"exp":1001,"iss":"me","aud":"you"}`), ""},
		{sign(secret, h, `{"exp":970,"nbf":1030,"iss":"me","aud":["x","you"]}`), ""},
		{sign(secret, h, `{"exp":969,"iss":"me","aud":"you"}`), "expired websocket jwt"},
		{sign(secret, h, `{"exp":2000,"nbf":1031,"iss":"me","aud":"you"}`), "websocket jwt is not valid yet"},
		{sign(secret, h, `{"exp":2000,"iss":"he","aud":"you"}`), "websocket jwt issuer mismatch"},
		{sign(secret, h, `{"exp":2000,"aud":"you"}`), "websocket jwt issuer mismatch"},
		{sign(secret, h, `{"exp":2000,"iss":"me","aud":["he"]}`), "websocket jwt audience mismatch"},
		{sign(secret, h, `{"exp":2000,"iss":"me"}`), "websocket jwt audience mismatch"},
		{sign(secret, h, `{"iss":"me","aud":"you"}`), "invalid websocket jwt"},
		{sign(secret, h, `{"exp":"2000","iss":"me","aud":"you"}`), "invalid websocket jwt"},
		{sign(secret, `{"alg":"none"}`, `{"exp":2000,"iss":"me","aud":"you"}`), "invalid websocket jwt"},
		{sign(secret, `{"alg":"HS512"}`, `{"exp":2000,"iss":"me","aud":"you"}`), "invalid websocket jwt"},
		{sign(secret, `{"alg":"HS256","crit":["b64"]}`, `{"exp":2000,"iss":"me","aud":"you"}`), "invalid websocket jwt"},
		{sign("other"+secret, h, `{"exp":2000,"iss":"me","aud":"you"}`), "invalid websocket jwt"},
		{sign(secret, h, `{"exp":2000,"iss":"me","aud":"you"}`) + "=", "invalid websocket jwt"},
		{"a.b", "invalid websocket jwt"},
		{"..", "invalid websocket jwt"},
	} {
		r, _ := http.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", "Bearer "+tc.token)
		got := ""
		if err := auth.Check(r); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.token, got, tc.want)
		}
	}
}
