package upstream

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/provider"
)

// Taken is whether a service takes a credential.
type Taken string

const (
	TakenYes Taken = "yes"
	TakenNo  Taken = "no"
	// TakenUnknown: the service was not reached, or its answer does not say.
	TakenUnknown Taken = "unknown"
)

// Checked is a source that was tried.
type Checked struct {
	Source
	Taken Taken  `json:"taken,omitempty" enum:"yes,no,unknown" doc:"whether the service takes the credential, if that was asked"`
	Note  string `json:"note,omitempty" doc:"why it is not known, or what to do"`
}

// checkTimeout bounds one call of a check.
const checkTimeout = 8 * time.Second

// Check asks the service of each route of a CLI for the list of its models, which costs
// nothing, and reports whether it took the credential. It is for a person who asks.
func (r *Routes) Check(ctx context.Context, c gateway.Claim) ([]Checked, error) {
	all, _, err := r.ways(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, missing(c.Provider)
	}
	var out []Checked
	var wg sync.WaitGroup
	for _, w := range all {
		for _, f := range w.upstreams {
			out = append(out, Checked{Source: Source{Upstream: f.Name, Host: f.Base.Host, Origin: f.origin, Item: f.Item}})
		}
	}
	i := 0
	for _, w := range all {
		for _, f := range w.upstreams {
			at := &out[i]
			i++
			wg.Go(func() { at.Taken, at.Note = r.try(ctx, w.dialect, f) })
		}
	}
	wg.Wait()
	return out, nil
}

// try makes one call.
func (r *Routes) try(ctx context.Context, d gateway.Dialect, f found) (Taken, string) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	to := f.Base.JoinPath("models")
	to.RawQuery = f.Base.RawQuery
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return TakenUnknown, "not an address"
	}
	if d == gateway.Anthropic {
		req.Header.Set("Anthropic-Version", "2023-06-01")
	}
	if err := f.Sign(ctx, req.Header, false); err != nil {
		if errors.Is(err, provider.ErrNeedsLogin) {
			return TakenNo, err.Error()
		}
		return TakenUnknown, err.Error()
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, own := range []*http.Client{r.cfg.Client, f.Client} {
		if own != nil {
			client.Transport = own.Transport
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		return TakenUnknown, "not reached: " + cause(err)
	}
	resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return TakenNo, "the service refuses it"
	case resp.StatusCode < 300:
		return TakenYes, ""
	}
	return TakenUnknown, "the service answered " + strconv.Itoa(resp.StatusCode)
}

// cause is an error without the address, which may hold a query.
func cause(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err.Error()
	}
	return err.Error()
}
