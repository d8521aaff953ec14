package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"
)

// Cookies names and shapes the session cookie of one server.
type Cookies struct {
	name   string
	secure bool
}

// NewCookies shapes the cookies of the server with this home. Browsers keep
// cookies per host and not per port, so two servers on one machine need two
// names or each login would end the other's.
func NewCookies(home string, secure bool) Cookies {
	h := sha256.Sum256([]byte(home))
	name := "thole_" + hex.EncodeToString(h[:4])
	if secure {
		name = "__Host-" + name
	}
	return Cookies{name: name, secure: secure}
}

// Name is the cookie's name.
func (c Cookies) Name() string { return c.name }

// Value is the secret a request carries, "" for none. Two cookies of the name
// can only come from an attacker who plants one next to thole's: neither counts.
func (c Cookies) Value(r *http.Request) string {
	all := r.CookiesNamed(c.name)
	if len(all) != 1 {
		return ""
	}
	return all[0].Value
}

// Set gives the browser its session.
func (c Cookies) Set(w http.ResponseWriter, value string, life time.Duration) {
	http.SetCookie(w, c.cookie(value, int(life/time.Second)))
}

// Clear takes it away.
func (c Cookies) Clear(w http.ResponseWriter) { http.SetCookie(w, c.cookie("", -1)) }

func (c Cookies) cookie(value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: c.name, Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: c.secure, SameSite: http.SameSiteStrictMode,
	}
}
