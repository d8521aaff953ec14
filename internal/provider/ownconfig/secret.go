package ownconfig

import (
	"errors"
	"io/fs"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"

	thole "github.com/tholehq/thole"
)

var secretWords = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "AUTH", "CREDENTIAL", "COOKIE", "BEARER", "SIGNATURE", "DSN", "CONNECTION_STRING", "DATABASE_URL"}

// secretName reports whether a variable, a header or an option with this name is likely to
// hold a secret.
func secretName(name string) bool {
	name = strings.ReplaceAll(strings.ToUpper(name), "-", "_")
	for _, word := range secretWords {
		if strings.Contains(name, word) {
			return true
		}
	}
	return name == "PAT" || strings.HasSuffix(name, "_PAT") || name == "PWD" || strings.HasSuffix(name, "_PWD")
}

// keyForm are the beginnings of keys of well-known services.
var keyForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(^|[^A-Za-z0-9])(sk-|sk_|rk_|ghp_|gho_|ghu_|ghs_|ghr_|github_pat_|glpat-|xox[abeoprs]-|AKIA|ASIA|AIza|ya29\.|eyJ|hf_|npm_|pypi-|dop_v1_|shpat_|tgw_|thole_|lin_api_|ntn_)[A-Za-z0-9_./+=-]{16,}`)
})

// secretValue reports whether a text is likely to be or to hold a secret: it has the form
// of a known key, a URL with a password, or is one long word of letters and digits.
func secretValue(s string) bool {
	if keyForm().MatchString(s) || strings.HasPrefix(strings.ToLower(s), "bearer ") || strings.HasPrefix(strings.ToLower(s), "basic ") {
		return true
	}
	if u, err := url.Parse(s); err == nil && u.User != nil {
		if _, has := u.User.Password(); has {
			return true
		}
	}
	if strings.ContainsAny(s, " \n\t") || strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~") || strings.HasPrefix(s, ".") {
		return false
	}
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return kind(r) == 0 }) {
		if len(word) >= 20 && mixed(word) {
			return true
		}
	}
	return false
}

// holdsSecret looks through everything in a value.
func holdsSecret(v any) bool {
	switch v := v.(type) {
	case string:
		return secretValue(v)
	case []any:
		return slices.ContainsFunc(v, holdsSecret)
	case *object:
		return slices.ContainsFunc(v.names, func(name string) bool { return holdsSecret(v.by[name]) })
	}
	return false
}

// mixed reports whether letters and digits change places too often for a word.
func mixed(word string) bool {
	changes, was := 0, 0
	for i, r := range word {
		if i > 0 && kind(r) != was {
			changes++
		}
		was = kind(r)
	}
	return changes*5 >= len(word)
}

func kind(r rune) int {
	switch {
	case r >= '0' && r <= '9':
		return 1
	case r >= 'A' && r <= 'Z':
		return 2
	case r >= 'a' && r <= 'z':
		return 3
	}
	return 0
}

// reason is an error without the path that stands next to it.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}

// unreadable is an error of a parser without the text that it quotes, which may be a secret.
func unreadable(err error) error {
	if p, ok := errors.AsType[toml.ParseError](err); ok {
		return thole.Errorf(thole.CodeInvalid, "line %d is not TOML", p.Position.Line)
	}
	return thole.Errorf(thole.CodeInvalid, "not JSON that every reader reads alike")
}
