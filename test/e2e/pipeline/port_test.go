package pipeline

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/poll"
)

// serves has the agent start a web server and go on, as agents do, and shows it with
// thole thread port: the turn is over, and its page is still there.
func (s *session) serves(t *testing.T) {
	t.Helper()
	s.play(`sim: run mkdir -p site && echo of the agent > site/page && (setsid python3 -m http.server 8123 --bind 127.0.0.1 --directory site >/dev/null 2>&1 </dev/null &) ;; say serving`)
	var url string
	poll.Until(t, "the agent's web server", func() bool {
		_, after, _ := strings.Cut(s.says(t, "thread", "port", s.id, "8123"), "http://")
		url, _, _ = strings.Cut(after, "\n")
		return url != ""
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	server := strings.TrimPrefix(s.base, "http://")
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", server) // as browsers do for every name below localhost
	}}}
	defer browser.CloseIdleConnections()
	host, _, _ := strings.Cut(url, "/")
	for _, at := range []string{"http://" + strings.TrimSpace(url), "http://" + host + "/page"} {
		resp, err := browser.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if want := map[bool]string{true: "of the agent\n", false: "Directory listing"}[strings.HasSuffix(at, "/page")]; err != nil || resp.StatusCode != 200 || !strings.Contains(string(text), want) {
			t.Errorf("%s: %s %.200q, %v", at, resp.Status, text, err)
		}
	}
	if said := s.says(t, "thread", "port", s.id, "8123", "--close"); said != "" {
		t.Errorf("closing it: %s", said)
	}
}
