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
func (c Cookies) Value(r *http.Request) string { return only(r, c.name) }

func only(r *http.Request, name string) string {
	all := r.CookiesNamed(name)
	if len(all) != 1 {
		return ""
	}
	return all[0].Value
}

// Flow is the secret of a login at a provider that this browser began.
func (c Cookies) Flow(r *http.Request) string { return only(r, c.name+"_flow") }

// SetFlow gives the browser that secret. Unlike the session's cookie it is sent when another
// site, the provider, leads here: that is all that it is for.
func (c Cookies) SetFlow(w http.ResponseWriter, value string, life time.Duration) {
	http.SetCookie(w, c.flow(value, int(life/time.Second)))
}

// ClearFlow takes it away.
func (c Cookies) ClearFlow(w http.ResponseWriter) { http.SetCookie(w, c.flow("", -1)) }

func (c Cookies) flow(value string, maxAge int) *http.Cookie {
	k := c.cookie(value, maxAge)
	k.Name, k.SameSite = c.name+"_flow", http.SameSiteLaxMode
	return k
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
