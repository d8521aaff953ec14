package peer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/roster"
	"github.com/tholehq/thole/internal/unguarded"
)

// echo is a connection that says what it hears.
func echo() net.Conn {
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		_, _ = io.Copy(there, there)
	}()
	return here
}

// TestOnlyServersReachEachOther: one that the roster does not name, or names as dead, is refused at
// both ends, and so is who answers in the place of another.
func TestOnlyServersReachEachOther(t *testing.T) {
	var servers []roster.Server
	list := func(context.Context) ([]roster.Server, error) { return servers, nil }
	make := func(id string) *Peers {
		p, err := New(id, list, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p
	}
	a, b, stranger := make("a"), make("b"), make("stranger")
	serve := func(p *Peers, word string) string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := p.Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/join":
				Join(w, r, func(context.Context) (net.Conn, error) { return echo(), nil })
			case "/said":
				_, _ = io.Copy(w, r.Body)
			case "/gone":
				jsonhttp.Error(w, thole.Errorf(thole.CodeGone, "not here").WithHint("look elsewhere"))
			default:
				_, _ = io.WriteString(w, word+" for "+r.Header.Get("Authorization"))
			}
		}))
		go func() { _ = srv.Serve(p.Listener(ln)) }()
		t.Cleanup(func() { _ = srv.Close() })
		return ln.Addr().String()
	}
	atB, atStranger := serve(b, "b answers"), serve(stranger, "an impostor answers")
	entry := func(id, at string, p *Peers, alive bool) roster.Server {
		return roster.Server{ID: id, Peer: at, Certificate: p.Sum(), Alive: alive}
	}
	ask := func(from *Peers, to roster.Server) (int, string) {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/sessions/x/changes", nil)
		r.Header.Set("Authorization", "Bearer mine")
		from.Pass(w, r, to)
		return w.Code, w.Body.String()
	}
	servers = []roster.Server{entry("a", "", a, true), entry("b", atB, b, true)}
	to, err := a.Find(t.Context(), "b")
	if err != nil || to == nil {
		t.Fatal(to, err)
	}
	if code, body := ask(a, *to); code != 200 || body != "b answers for Bearer mine" {
		t.Errorf("%d %s", code, body)
	}
	if code, body := ask(a, entry("b", atStranger, b, true)); code != 503 {
		t.Errorf("who answers at the address of another: %d %s", code, body)
	}
	if own, err := a.Find(t.Context(), "a"); own != nil || err != nil {
		t.Errorf("this server is no other one: %v, %v", own, err)
	}
	code, body := ask(stranger, *to)
	if refused := code == 503; refused == unguarded.Build {
		t.Errorf("one that is no server: %d %s", code, body)
	}
	joins := func(from *Peers) error {
		conn, err := from.Connect(t.Context(), *to, "/join")
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "over and out\n"); err != nil {
			return err
		}
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "over and out\n" {
			return fmt.Errorf("%q, %w", line, err)
		}
		return nil
	}
	if err := joins(a); err != nil {
		t.Error("a connection through b:", err)
	}
	if err := joins(stranger); (err == nil) != unguarded.Build {
		t.Error("a connection of one that is no server:", err)
	}
	if _, err := a.Connect(t.Context(), entry("b", atStranger, b, true), "/join"); thole.CodeOf(err) != thole.CodeUnavailable {
		t.Error("a connection through who answers at the address of another:", err)
	}
	var answered struct {
		Said string `json:"said"`
	}
	if err := a.Ask(t.Context(), *to, "POST", "/said", map[string]string{"said": "this"}, &answered); err != nil || answered.Said != "this" {
		t.Error(answered, err)
	}
	if err := a.Ask(t.Context(), *to, "GET", "/gone", nil, &answered); thole.CodeOf(err) != thole.CodeGone || thole.HintOf(err) != "look elsewhere" {
		t.Error("a refusal of b:", err)
	}
	servers[0].Alive, servers[1].Alive = false, false
	if dead, err := a.Find(t.Context(), "b"); dead != nil || err != nil {
		t.Errorf("one that died is asked: %v, %v", dead, err)
	}
}
