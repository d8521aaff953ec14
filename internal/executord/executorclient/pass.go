package executorclient

import (
	"net/http"
	"net/http/httputil"
	"net/url"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonhttp"
)

// PassTerminal passes a request for a terminal on to the executor, with the token,
// and returns when that terminal is over or the request's context ends. A caller that
// calls it has judged who asks.
func (c *Client) PassTerminal(w http.ResponseWriter, r *http.Request) {
	base, err := url.Parse(c.base)
	if err != nil {
		jsonhttp.Error(w, thole.Errorf(thole.CodeInternal, "executor address: %w", err))
		return
	}
	proxy := &httputil.ReverseProxy{
		Transport: c.http.Transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(base)
			p.Out.URL.Path, p.Out.URL.RawPath, p.Out.URL.RawQuery = "/terminal", "", ""
			p.Out.Header.Set("Authorization", "Bearer "+c.token)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			jsonhttp.Error(w, thole.Errorf(thole.CodeUnavailable, "reach executor: %w", err))
		},
	}
	proxy.ServeHTTP(w, r)
}
