package git

import (
	"encoding/base64"
	"net"
	"net/url"
)

// Host is the server of an address over http or https, as tokens are kept for it; "" for
// other addresses, and for a server to which a token would travel in the open.
func Host(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
		return u.Host
	}
	return ""
}

// Credential is configuration with which git shows a token to the server of an address,
// and to no other. It travels in git's environment, never on its command line.
func Credential(address, token string) map[string]string {
	u, err := url.Parse(address)
	if err != nil || Host(address) == "" || token == "" {
		return nil
	}
	basic := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token))
	return map[string]string{
		"http." + u.Scheme + "://" + u.Host + "/.extraHeader": "Authorization: Basic " + basic,
		"credential.helper":    "", // the user's own is not asked besides
		"http.followRedirects": "false",
	}
}
