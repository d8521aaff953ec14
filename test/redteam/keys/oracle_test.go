//go:build linux

package keys

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// insider is a program of an agent's that outlives its turn. It takes the token of the
// gateway from wherever it is, and sends what it gets to the gateway's port.
const insider = `import base64, json, os, re, socket, time
os.chdir("/workspace")
def put(name, value):
    with open(name + ".new", "w") as f: json.dump(value, f)
    os.rename(name + ".new", name)
tokens = set()
for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
    for name in ("environ", "cmdline"):
        try: tokens.update(t.decode() for t in re.findall(rb"tgw_[A-Za-z0-9_-]+", open("/proc/%s/%s" % (pid, name), "rb").read()))
        except OSError: pass
put("tokens.json", sorted(tokens))
n = 0
while True:
    if not os.path.exists("ask-%d.json" % n):
        time.sleep(0.02)
        continue
    out = []
    for text in json.load(open("ask-%d.json" % n)):
        got, why = b"", ""
        try:
            s = socket.create_connection(("127.0.0.1", 3129), 10)
            s.settimeout(4)
            s.sendall(base64.b64decode(text))
            while len(got) < 1 << 20:
                part = s.recv(65536)
                if not part: break
                got += part
                if b"\r\n0\r\n\r\n" in got: break
                head, end, body = got.partition(b"\r\n\r\n")
                size = re.search(rb"(?i)content-length: (\d+)", head)
                if end and size and len(body) >= int(size.group(1)): break
                if end and (b" 204 " in head[:20] or b" 304 " in head[:20]): break
        except OSError as e: why = str(e)
        out.append([base64.b64encode(got).decode(), why])
    put("answer-%d.json" % n, out)
    n += 1
`

// oracle is an insider in a thread's box, and the turn that brought it there, which lasts
// until it is let go.
type oracle struct {
	*thread
	turn  string
	token string // of the gateway
	asked int
}

// betray lets an agent leave an insider in its box.
func (th *thread) betray() *oracle {
	th.Helper()
	o := &oracle{thread: th}
	o.turn = th.start(shell("cat > /tmp/insider.py <<'END'\n"+insider+"END\nsetsid /usr/bin/python3 /tmp/insider.py >/tmp/insider.log 2>&1 </dev/null &\nuntil test -e /workspace/go; do sleep 0.05; done\n", "let go"))
	var tokens []string
	poll.Until(th, "the insider", func() bool {
		var got turn
		th.call("GET", "/runs/"+o.turn, nil, &got)
		if got.Outcome != "" {
			th.Fatalf("the turn ended %s: %+v", got.Outcome, got.Error)
		}
		if got.Phase != "running" {
			return false
		}
		text, err := os.ReadFile(filepath.Join(th.workspace(), "tokens.json"))
		return err == nil && json.Unmarshal(text, &tokens) == nil
	})
	if len(tokens) != 1 {
		th.Fatalf("the insider found the tokens %q", tokens)
	}
	o.token = tokens[0]
	return o
}

// letGo ends the insider's turn; the insider stays.
func (o *oracle) letGo() {
	o.Helper()
	o.lay("go", "")
	if got := o.settle(o.turn); got.Outcome != "completed" {
		o.Fatalf("the turn ended %s: %+v", got.Outcome, got.Error)
	}
}

// answer is what came back on a connection.
type answer struct {
	status int // 0: none
	text   string
}

// ask lets the insider send each text on a connection of its own.
func (o *oracle) ask(texts ...string) []answer {
	o.Helper()
	var all []string
	for _, text := range texts {
		all = append(all, base64.StdEncoding.EncodeToString([]byte(text)))
	}
	o.lay(fmt.Sprintf("ask-%d.json", o.asked), o.json(all))
	var got [][2]string
	path := filepath.Join(o.workspace(), fmt.Sprintf("answer-%d.json", o.asked))
	poll.Until(o, "the insider's answer", func() bool {
		text, err := os.ReadFile(path)
		return err == nil && json.Unmarshal(text, &got) == nil
	})
	o.asked++
	out := make([]answer, len(got))
	for i, g := range got {
		text, err := base64.StdEncoding.DecodeString(g[0])
		if err != nil {
			o.Fatal(err)
		}
		out[i] = parse(string(text) + g[1])
	}
	return out
}

func parse(text string) answer {
	a := answer{text: text}
	if words := strings.Fields(text); len(words) > 1 && strings.HasPrefix(text, "HTTP/1.") {
		a.status, _ = strconv.Atoi(words[1])
	}
	return a
}

// post is a call of a model as a client writes it.
func post(target, token, body string, headers ...string) string {
	head := []string{"POST " + target + " HTTP/1.1", "Host: 127.0.0.1:3129", "Content-Type: application/json", "Content-Length: " + strconv.Itoa(len(body))}
	if token != "" {
		head = append(head, "Authorization: Bearer "+token)
	}
	return strings.Join(append(head, headers...), "\r\n") + "\r\n\r\n" + body
}

// message is the smallest call in the dialect of claude.
func message(model string) string {
	return `{"model":"` + model + `","max_tokens":16,"messages":[{"role":"user","content":"sim: say answered"}]}`
}

// knock sends a text to the gateway's socket from the host, after a first line.
func (w *world) knock(first, text string) answer {
	w.Helper()
	c, err := net.Dial("unix", filepath.Join(w.home, "gateway", "g.sock"))
	if err != nil {
		w.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(c, first+strings.Replace(text, "\r\nHost:", "\r\nConnection: close\r\nHost:", 1)); err != nil {
		return answer{text: err.Error()}
	}
	var got bytes.Buffer
	_, err = io.Copy(&got, c)
	return parse(got.String() + fmt.Sprint(err))
}

// proof is the line that the executor's own forwarder writes; only the server's side of
// the wall can make it.
func (th *thread) proof() string {
	th.Helper()
	return wire.Gateway + wire.GatewayProof(th.secret()) + "\n"
}

// secret is what the server and this start of the executor share.
func (th *thread) secret() string {
	th.Helper()
	return th.executor().Token
}

// witness counts what reaches it and lets a handler answer.
type witness struct {
	handler http.Handler
	seen    lines // a line for each request
}

func (s *witness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	fmt.Fprintf(&s.seen, "%s %s %s %s\n", r.Method, r.RequestURI, r.Header.Get("X-Api-Key")+r.Header.Get("Authorization"), hex.EncodeToString(sum(body)))
	s.handler.ServeHTTP(w, r)
}

func sum(b []byte) []byte { s := sha256.Sum256(b); return s[:4] }
