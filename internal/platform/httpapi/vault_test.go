package httpapi_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/sqldb"
)

func TestSecrets(t *testing.T) {
	var log bytes.Buffer
	g := newRig(t, func(c *httpapi.Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	var made, again, list, item obj
	login := obj{"name": "codex", "kind": "provider_auth", "provider": "codex", "value": `{"OPENAI_API_KEY":"` + secret + `"}`}
	keyed := g.me.with("Idempotency-Key", "k")
	res := keyed.call(201, "POST", "/vault/items", login, &made)
	keyed.call(201, "POST", "/vault/items", login, &again)
	if again["id"] != made["id"] || res.Header.Get("ETag") != `"`+made["etag"].(string)+`"` {
		t.Fatalf("%v, then %v", made, again)
	}
	g.me.call(409, "POST", "/vault/items", login, nil)
	for _, bad := range []obj{{}, {"name": "n", "kind": "env", "value": ""}, {"name": "n", "kind": "nothing", "value": "v"}, {"name": "n", "kind": "env", "value": "v", "owner": "nobody"}} {
		g.me.call(422, "POST", "/vault/items", bad, nil)
	}
	g.me.call(422, "POST", "/vault/items", obj{"name": "../n", "kind": "env", "value": "v"}, nil)
	at := "/vault/items/" + made["id"].(string)

	g.me.with("If-Match", `"other"`).call(412, "PUT", at+"/value", obj{"value": `{}`}, nil)
	res = g.me.with("If-Match", res.Header.Get("ETag")).call(200, "PUT", at+"/value", obj{"value": `{"OPENAI_API_KEY":"second"}`}, &item)
	if item["version"] != 2.0 || item["fingerprint"] == made["fingerprint"] {
		t.Errorf("%v", item)
	}
	var uses, changes, tested obj
	g.me.call(200, "POST", at+"/test", nil, &tested)
	g.me.call(200, "GET", at+"/uses", nil, &uses)
	g.me.call(200, "GET", at+"/changes", nil, &changes)
	g.me.call(200, "GET", "/vault/items", nil, &list)
	if len(items(uses)) != 1 || len(items(changes)) != 2 || len(items(list)) != 1 || tested["found"] == "" || list["locked"] != nil {
		t.Errorf("%v %v %v %v", uses, changes, list, tested)
	}
	if c := items(changes)[0].(obj); c["event"] != "item.replace" || c["actor"] != string(thole.LocalUser) || c["via"] != "cookie" {
		t.Errorf("%v", c)
	}

	// Without its key the vault is locked, and says so in its own code.
	key := filepath.Join(g.Home, "vault.key")
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	var p obj
	g.me.call(503, "POST", at+"/test", nil, &p)
	if p["code"] != "vault_locked" || !strings.Contains(p["hint"].(string), "put the key file back") {
		t.Errorf("%v", p)
	}
	locked := g.me.with("Idempotency-Key", "locked")
	locked.call(503, "POST", "/vault/items", obj{"name": "later", "kind": "env", "value": secret}, nil)
	g.me.call(200, "GET", "/vault/items", nil, &list)
	if len(items(list)) != 1 || list["locked"] == nil || list["hint"] == nil {
		t.Errorf("%v", list)
	}
	if err := os.Rename(key+".away", key); err != nil {
		t.Fatal(err)
	}
	locked.call(201, "POST", "/vault/items", obj{"name": "later", "kind": "env", "value": secret}, nil)

	g.me.with("If-Match", `"other"`).call(412, "DELETE", at, nil, nil)
	g.me.with("If-Match", res.Header.Get("ETag")).call(204, "DELETE", at, nil, nil)
	g.me.call(410, "POST", at+"/test", nil, nil)
	if err := g.db.Update(ctx, "test.update", func(tx *sqldb.Tx) error { // an internal fault is logged, the value is not
		_, err := tx.Exec(`update vault_items set nonce = ciphertext where name = 'later'`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	g.me.call(200, "GET", "/vault/items", nil, &list)
	g.me.call(500, "POST", "/vault/items/"+items(list)[0].(obj)["id"].(string)+"/test", nil, nil)
	if text := log.String(); !strings.Contains(text, "does not open") || strings.Contains(text, secret) {
		t.Errorf("the log: %s", text)
	}
	g.me.call(200, "GET", "/vault/items?revoked=true", nil, &list)
	if len(items(list)) != 2 {
		t.Errorf("%v", list)
	}
}

// What is set here pays for turns and sees them: a stolen token or an old login does not
// set it, and each code works once.
func TestSettingSecretsNeedsAPerson(t *testing.T) {
	g := newRig(t)
	token := func(scope string) *caller {
		var made obj
		g.me.call(201, "POST", "/auth/tokens", obj{"name": scope, "scope": scope}, &made)
		return &caller{g: g, header: http.Header{"Authorization": {"Bearer " + made["token"].(string)}}}
	}
	read, act, admin := token("read"), token("act"), token("admin")
	var made, p obj
	g.me.call(201, "POST", "/vault/items", obj{"name": "mine", "kind": "env", "value": "v"}, &made)
	at := "/vault/items/" + made["id"].(string)
	n := obj{"name": "n", "kind": "env", "value": "v"}
	for _, c := range []*caller{read, act} {
		c.call(200, "GET", "/vault/items", nil, nil)
		c.call(403, "POST", "/vault/items", n, nil)
		c.call(403, "PUT", at+"/value", obj{"value": "x"}, nil)
		c.call(403, "DELETE", at, nil, nil)
	}
	read.call(403, "POST", at+"/test", nil, nil)
	act.call(200, "POST", at+"/test", nil, nil)
	admin.call(403, "POST", "/vault/items", n, &p)
	if !strings.Contains(p["hint"].(string), "confirm_code") {
		t.Errorf("%v", p)
	}
	admin.call(403, "PUT", at+"/value", obj{"value": "x"}, nil)
	code := func(user thole.UserID) string {
		c, err := g.Sessions.NewLogin(ctx, user)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	mine := code(thole.LocalUser)
	admin.call(401, "POST", "/vault/items", obj{"name": "n", "kind": "env", "value": "v", "confirm_code": "x"}, nil)
	admin.call(401, "POST", "/vault/items", obj{"name": "n", "kind": "env", "value": "v", "confirm_code": code(otherUser)}, nil)
	admin.with("If-Match", `"other"`).call(412, "PUT", at+"/value", obj{"value": "x", "confirm_code": mine}, nil) // uses nothing up
	admin.call(201, "POST", "/vault/items", obj{"name": "n", "kind": "env", "value": "v", "confirm_code": mine}, nil)
	admin.call(401, "PUT", at+"/value", obj{"value": "x", "confirm_code": mine}, nil)
	admin.call(200, "PUT", at+"/value", obj{"value": "x", "confirm_code": code(thole.LocalUser)}, nil)

	// The other user has their own and nothing shared.
	for _, owner := range []string{"project", "app", "platform"} {
		g.you.call(403, "POST", "/vault/items", obj{"name": "n", "kind": "env", "value": "v", "owner": owner}, nil)
		g.me.call(201, "POST", "/vault/items", obj{"name": owner, "kind": "env", "value": "v", "owner": owner}, nil)
	}
	g.you.call(201, "POST", "/vault/items", n, nil)
	var list obj
	g.you.call(200, "GET", "/vault/items", nil, &list)
	if len(items(list)) != 1 {
		t.Errorf("%v", list)
	}
}
