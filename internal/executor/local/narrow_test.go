package local_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// Under policy none an agent does not even reach its model on the machine's loopback.
func TestNoneReachesNoModel(t *testing.T) {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "of the model") }))
	defer model.Close()
	b := setup(t, lab.Bwrap(t))
	b.driver = local.New(local.Config{Root: b.root, Binary: binary, Bwrap: lab.Bwrap(t), Egress: wire.Egress{Policy: "none"}})
	req := b.request("sim: run curl -s -m 20 $OPENAI_BASE_URL; echo tried", thole.ProfileFull)
	req.Grant = provider.Grant{Env: map[string]string{"OPENAI_BASE_URL": model.URL}}
	if got := b.take(b.start(), req); got != "tried\n" {
		t.Errorf("the agent got %q", got)
	}
}

// What a thread may reach comes with its run, and changes under it at once: what was
// open and is refused now is cut.
func TestAThreadIsNarrowed(t *testing.T) {
	begun := make(chan struct{}, 1)
	place := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "of the host")
		if r.URL.Path == "/stream" {
			_ = http.NewResponseController(w).Flush()
			begun <- struct{}{}
			<-r.Context().Done()
		}
	}))
	defer place.Close()
	b := setup(t, lab.Bwrap(t))
	b.driver = local.New(local.Config{Root: b.root, Binary: binary, Bwrap: lab.Bwrap(t), Egress: wire.Egress{Policy: "open", Private: []string{strings.TrimPrefix(place.URL, "http://")}}})
	info := b.start()
	c := executorclient.Dial(info.Endpoint, info.Token)
	defer c.Close()
	got := make(chan string, 1)
	go func() {
		got <- b.take(info, b.request("sim: run export NO_PROXY= no_proxy=; curl -sN "+place.URL+"/stream; curl -s "+place.URL, thole.ProfileFull))
	}()
	<-begun
	if err := c.SetNetwork(t.Context(), &event.NetworkPolicy{Policy: "gateway"}); err != nil {
		t.Fatal(err)
	}
	if text := <-got; strings.Count(text, "of the host") != 1 || !strings.Contains(text, `the network of this thread is "gateway"`) {
		t.Errorf("the agent got %q", text)
	}
	req := b.request("sim: run export NO_PROXY= no_proxy=; curl -s "+place.URL, thole.ProfileFull)
	req.Session.Network = &event.NetworkPolicy{Policy: "list", Allow: []string{strings.TrimPrefix(place.URL, "http://")}}
	if text := b.take(info, req); text != "of the host\n" {
		t.Errorf("with the place in its list the agent got %q", text)
	}
	req = b.request("sim: run export NO_PROXY= no_proxy=; curl -s "+place.URL, thole.ProfileFull)
	if text := b.take(info, req); text != "of the host\n" {
		t.Errorf("without a policy of its own the agent got %q", text)
	}
}

// A policy that nothing would hold is refused.
func TestANarrowedThreadNeedsWalls(t *testing.T) {
	b := setup(t, "")
	info := b.start()
	c := executorclient.Dial(info.Endpoint, info.Token)
	defer c.Close()
	req := b.request("sim: say x", thole.ProfileFull)
	req.Session.Network = &event.NetworkPolicy{Policy: "none"}
	if _, err := c.Run(t.Context(), req); thole.CodeOf(err) != thole.CodeUnsupported {
		t.Errorf("%v", err)
	}
}
