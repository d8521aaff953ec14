package provider

import (
	"bytes"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider/table"
)

// IsLoginFile reports whether a login that was handed in is a CLI's own file, and not
// a key of one line.
func IsLoginFile(value []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(value), []byte("{")) }

// CheckLogin judges a login that a person hands in: the whole login file of a CLI, or a
// key of one line. What it says repeats nothing of the value.
func CheckLogin(providerName string, value []byte) error {
	if !IsLoginFile(value) {
		if bytes.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return thole.Errorf(thole.CodeInvalid, "this is neither a login file nor a key of one line").WithHint("pass the file whole, or the key alone, without spaces and line ends")
		}
		return nil
	}
	if table.Of(providerName).Login.File == "" {
		return thole.Errorf(thole.CodeInvalid, "%s has no login file that thole knows", providerName).WithHint("set its API key instead")
	}
	if _, err := decodeLogin(value); err != nil {
		return thole.Errorf(thole.CodeInvalid, "the login file of %s is not one JSON object", providerName).WithHint("log in with %s again and pass its file whole", providerName)
	}
	return nil
}

// LoginNote says in a line what a login is, without its secrets.
func LoginNote(providerName string, value []byte, now time.Time) (string, error) {
	if err := CheckLogin(providerName, value); err != nil {
		return "", err
	}
	if !IsLoginFile(value) {
		return "a key for " + providerName + "; it was not tried on the service", nil
	}
	login, err := decodeLogin(value)
	if err != nil {
		return "", err
	}
	r := table.Of(providerName).Login.Renewal
	note := "a login file of " + providerName
	if end := endOf(r, login); !end.IsZero() {
		when := " ends "
		if end.Before(now) {
			when = " ended "
		}
		note += "; its access token" + when + end.UTC().Format(time.RFC3339)
		if login.text(r.Refresh) != "" {
			note += " and can be renewed"
		}
	}
	return note + "; it was not tried on the service", nil
}

// LoginFile is where a CLI keeps its login below a home directory.
func LoginFile(providerName string) string {
	l := table.Of(providerName).Login
	if l.File == "" {
		return ""
	}
	return strings.TrimSuffix(l.Dir, "/") + "/" + l.File
}
