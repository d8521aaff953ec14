package setup

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// sign is Way.Sign.
type sign = func(ctx context.Context, h http.Header, refused bool) error

// Header is how a service wants a credential.
type Header string

const (
	Bearer Header = "bearer"    // Authorization: Bearer
	APIKey Header = "x-api-key" // X-Api-Key
)

// HeaderOf is how the services of a dialect want a key.
func HeaderOf(d Dialect) Header {
	if d == Anthropic {
		return APIKey
	}
	return Bearer
}

func (k Header) set(h http.Header, value string) {
	h.Del("Authorization")
	h.Del("X-Api-Key")
	if k == APIKey {
		h.Set("X-Api-Key", value)
	} else {
		h.Set("Authorization", "Bearer "+value)
	}
}

// SignKey signs with a key that get returns for each call, so that a key can be replaced
// without a restart. origin says where the key is from.
func SignKey(k Header, origin string, get func(context.Context) (string, error)) sign {
	last := ""
	return func(ctx context.Context, h http.Header, refused bool) error {
		key, err := get(ctx)
		if err != nil {
			return err
		}
		if key = strings.TrimSpace(key); key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return thole.Errorf(thole.CodeUnavailable, "%s is empty or not a key of one line", origin)
		}
		if refused && key == last {
			return thole.Errorf(thole.CodeForbidden, "the key from %s: %w", origin, provider.ErrNeedsLogin).WithHint("replace it by one that is valid")
		}
		last = key
		k.set(h, key)
		return nil
	}
}

// Constant returns a key that was read already.
func Constant(key string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return key, nil }
}

// withHeaders adds headers of the set-up, which may hold a credential themselves.
func withHeaders(s sign, extra http.Header) sign {
	if len(extra) == 0 {
		return s
	}
	return func(ctx context.Context, h http.Header, refused bool) error {
		if s != nil {
			if err := s(ctx, h, refused); err != nil {
				return err
			}
		}
		for name, values := range extra {
			h[name] = slices.Clone(values)
		}
		return nil
	}
}

// oauthBeta is the feature without which Anthropic takes no access token of a login.
const oauthBeta = "oauth-2025-04-20"

// signOAuth signs as Claude Code does with an access token.
func signOAuth(h http.Header, token string) {
	Bearer.set(h, token)
	all := strings.Join(h.Values("Anthropic-Beta"), ",")
	for _, name := range strings.Split(all, ",") {
		if strings.TrimSpace(name) == oauthBeta {
			return
		}
	}
	h.Set("Anthropic-Beta", strings.TrimPrefix(all+","+oauthBeta, ","))
}

// signLogin signs with a login of a CLI and renews it where it must.
func signLogin(l provider.Login, cli string, at provider.Kept, needsLogin func(context.Context)) sign {
	last := ""
	return func(ctx context.Context, h http.Header, refused bool) error {
		was := ""
		if refused {
			was = last
		}
		c, err := l.Credential(ctx, cli, at, was)
		if err != nil {
			if errors.Is(err, provider.ErrNeedsLogin) && needsLogin != nil {
				needsLogin(ctx)
			}
			return err
		}
		last = c.Token
		service := ofCLI[cli]
		switch {
		case c.Key:
			HeaderOf(service.Dialect).set(h, c.Token)
		case service.Dialect == Anthropic:
			signOAuth(h, c.Token)
		default:
			Bearer.set(h, c.Token)
			if c.Account != "" {
				h.Set("ChatGPT-Account-ID", c.Account)
			}
		}
		return nil
	}
}
