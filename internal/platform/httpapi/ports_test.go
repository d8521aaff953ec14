package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/platform/preview"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// A port is opened by a person, ends with their login, and its origin has nothing of the API.
func TestPorts(t *testing.T) {
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "the agent's ", r.URL.Path) }))
	defer agent.Close()
	var ports *preview.Previews
	g := newRig(t, func(c *httpapi.Config) {
		ports = preview.New(preview.Config{
			Page:    &url.URL{Scheme: "http", Host: "127.0.0.1:7433"},
			Running: func(context.Context, thole.ThreadID) (thole.ExecutorID, error) { return "x", nil },
			Dial: func(ctx context.Context, _ thole.ThreadID, _ thole.ExecutorID, port uint16) (net.Conn, error) {
				if port != 8080 {
					return nil, thole.Errorf(thole.CodeConflict, "nothing listens on port %d of the agent", port)
				}
				return new(net.Dialer).DialContext(ctx, "tcp", agent.Listener.Addr().String())
			},
		})
		t.Cleanup(ports.CloseAll)
		c.Previews = ports
	})
	id := g.me.session(obj{})
	at := "/sessions/" + id + "/ports"
	var problem obj
	g.me.call(409, "POST", at, obj{"port": 9}, &problem)
	if !strings.Contains(problem["detail"].(string), "nothing listens on port 9") {
		t.Errorf("nobody listens: %v", problem)
	}
	g.you.call(404, "POST", at, obj{"port": 8080}, nil)
	g.you.call(404, "GET", at, nil, nil)
	g.you.call(404, "DELETE", at+"/8080", nil, nil)
	var token, port, list obj
	g.me.call(201, "POST", "/auth/tokens", obj{"name": "an agent's", "scope": "act"}, &token)
	acts := (&caller{g: g}).with("Authorization", "Bearer "+token["token"].(string))
	acts.call(403, "POST", at, obj{"port": 8080}, &problem)
	acts.call(403, "DELETE", at+"/8080", nil, nil)
	if !strings.Contains(problem["detail"].(string), "scope admin") {
		t.Errorf("a token without the scope: %v", problem)
	}
	g.me.call(201, "POST", at, obj{"port": 8080}, &port)
	acts.call(200, "GET", at, nil, &list)
	if all := items(list); len(all) != 1 || all[0].(obj)["id"] != port["id"] || all[0].(obj)["url"] != nil {
		t.Errorf("listed %v", list)
	}
	visit := func(host, path string, cookies ...*http.Cookie) (*http.Response, string) {
		t.Helper()
		r := g.me.request("GET", path, nil) // with all that logs me in
		r.Host = host
		for _, c := range cookies {
			r.AddCookie(c)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp, string(text)
	}
	u, err := url.Parse(port["url"].(string))
	if err != nil {
		t.Fatal(err)
	}
	if resp, text := visit(u.Host, "/sessions"); resp.StatusCode != 403 || !strings.HasPrefix(text, "this browser was not let in") {
		t.Errorf("the API on a port's origin: %s %s", resp.Status, text)
	}
	entered, _ := visit(u.Host, u.RequestURI())
	cookie := entered.Cookies()[0]
	for _, path := range []string{"/sessions", "/auth/session", "/"} {
		if resp, text := visit(u.Host, path, cookie); resp.StatusCode != 200 || text != "the agent's "+path {
			t.Errorf("%s of a port: %s %s", path, resp.Status, text)
		}
	}
	for _, host := range []string{"aaaaaaaaaaaaaaaaaaaaaaaaaa.localhost:7433", "evil.localhost:7433", "x." + u.Host, strings.Replace(u.Host, ".localhost", ".localhost.", 1), "localhost.evil:7433"} {
		if resp, text := visit(host, "/sessions", cookie); resp.StatusCode != 403 {
			t.Errorf("host %s: %s %s", host, resp.Status, text)
		}
	}
	g.me.call(204, "POST", "/auth/logout", nil, nil)
	poll.Until(t, "the end of the port with its login", func() bool { return len(ports.List(t.Context(), thole.ThreadID(id))) == 0 })
}
