package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/relay"
)

const (
	maxReply = 64 << 10 // of an answer of the registry
	// registerFor bounds a registration. The registry may ask another executor meanwhile.
	registerFor = 15 * time.Second
)

var environmentID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// CheckEnvironmentID says what is wrong with the name of an environment.
func CheckEnvironmentID(id string) error {
	if !environmentID.MatchString(id) || strings.Trim(id, ".") == "" {
		return thole.Errorf(thole.CodeInvalid, "invalid environment id %q: use 1 to 64 of A-Z a-z 0-9 . _ -", id)
	}
	return nil
}

// Registry is a client of the registry, for one environment.
type Registry struct {
	base, id string
	token    func() (string, error)
	http     *http.Client
}

// NewRegistry is a client that proves itself with what token returns, at every call.
// The token leaves only over https or to loopback.
func NewRegistry(base, id string, token func() (string, error)) (*Registry, error) {
	base = strings.TrimRight(strings.TrimSpace(base), "/")
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, thole.Errorf(thole.CodeInvalid, "invalid relay address %q", base).WithHint("use https://HOST[:PORT], or http:// to loopback")
	}
	if u.Scheme == "http" && !Loopback(u.Hostname()) {
		return nil, thole.Errorf(thole.CodeForbidden, "relay %s: refusing to send a token unencrypted", base).WithHint("use https:// or a tunnel to loopback")
	}
	if err := CheckEnvironmentID(id); err != nil {
		return nil, err
	}
	return &Registry{base: base, id: id, token: token, http: &http.Client{CheckRedirect: noRedirect, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}}, nil
}

// Loopback reports whether a host, as URLs name it, is this machine.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

func (r *Registry) register(ctx context.Context, key relay.Key) (relay.Registration, error) {
	var out relay.Registration
	ctx, cancel := context.WithTimeout(ctx, registerFor)
	defer cancel()
	err := r.call(ctx, "register", relay.RegisterRequest{SecurityProfile: relay.Profile, ExecutorPublicKey: key}, &out, nil)
	if err == nil {
		err = r.check(out)
	}
	return out, err
}

func (r *Registry) connect(ctx context.Context, key relay.Key) (relay.Bundle, error) {
	var out relay.Bundle
	err := r.call(ctx, "connect", relay.ConnectRequest{HarnessPublicKey: key}, &out, nil)
	if err == nil {
		err = r.check(out.Registration)
	}
	if err == nil && (out.HarnessKeyAuthorization == "" || len(out.HarnessKeyAuthorization) > relay.MaxAuthorization) {
		err = thole.Errorf(thole.CodeInvalid, "the registry issued no usable authorization")
	}
	return out, err
}

func (r *Registry) validate(ctx context.Context, stream string, in relay.ValidateRequest) (bool, error) {
	var out relay.ValidateResult
	err := r.call(ctx, "validate", in, &out, map[string]string{relay.HeaderStreamID: stream})
	return err == nil && out.Valid, err
}

// check refuses an answer about something else.
func (r *Registry) check(reg relay.Registration) error {
	switch {
	case reg.EnvironmentID != r.id:
		return thole.Errorf(thole.CodeInvalid, "the registry answered for environment %q and was asked for %q", reg.EnvironmentID, r.id)
	case reg.SecurityProfile != relay.Profile:
		return thole.Errorf(thole.CodeInvalid, "the registry offers the security profile %q: only %s is known", reg.SecurityProfile, relay.Profile)
	case reg.URL == "" || reg.ExecutorRegistrationID == "":
		return thole.Errorf(thole.CodeInvalid, "the registry named no rendezvous or no registration")
	}
	u, err := url.Parse(reg.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss":
		return thole.Errorf(thole.CodeInvalid, "the registry named a rendezvous that is not a ws:// or wss:// address")
	case u.Scheme == "ws" && !Loopback(u.Hostname()):
		return thole.Errorf(thole.CodeForbidden, "the registry named the rendezvous ws://%s: refusing to send a ticket unencrypted", u.Host).
			WithHint("give the relay its https:// address with --public-url")
	}
	return nil
}

func (r *Registry) call(ctx context.Context, method string, in, out any, header map[string]string) error {
	token, err := r.token()
	if err != nil {
		return err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.base+"/cloud/environment/"+r.id+"/"+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "%s at the registry: %w", method, innermost(err))
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err != nil || len(raw) > maxReply {
		return thole.Errorf(thole.CodeUnavailable, "%s at the registry: the answer could not be read", method)
	}
	if resp.StatusCode != http.StatusOK {
		return refusal(method, resp.StatusCode, raw)
	}
	if err := strictjson.Unmarshal(raw, out); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "%s at the registry: %w", method, err)
	}
	return nil
}

// refusal is an error whose code says whether trying again may help.
func refusal(method string, status int, raw []byte) error {
	var f relay.Failure
	_ = strictjson.Unmarshal(raw, &f)
	said := f.Error.Message
	if said == "" {
		said = http.StatusText(status)
	}
	code := thole.CodeInvalid
	switch {
	case status == http.StatusUnauthorized:
		code = thole.CodeUnauthorized
	case status == http.StatusForbidden:
		code = thole.CodeForbidden
	case f.Error.Code == relay.CodeInUse:
		return thole.Errorf(thole.CodeBusy, "%s at the registry: %.200s", method, said).
			WithHint("stop the other one, or give this one an --environment-id of its own")
	case status == http.StatusConflict || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= 500:
		code = thole.CodeUnavailable
	}
	return thole.Errorf(code, "%s at the registry: refused with %d: %.200s", method, status, said)
}
