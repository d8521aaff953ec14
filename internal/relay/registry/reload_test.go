package registry_test

import (
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/relay/registry"
	wire "github.com/tholehq/thole/protocol/relay"
)

// TestTokensChange: tokens are added and revoked while the relay runs, and a file that is
// no use changes nothing.
func TestTokensChange(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	tokens, made, err := registry.OpenTokens(file)
	if err != nil || !made {
		t.Fatal(made, err)
	}
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := registry.New(registry.Config{TokensFile: tokens})
	srv := httptest.NewServer(r)
	t.Cleanup(func() { r.Close(); srv.Close() })
	register := func(token string) int {
		return post(t, srv.URL, strings.TrimSpace(token), "register", wire.RegisterRequest{SecurityProfile: wire.Profile, ExecutorPublicKey: key(t)}, nil)
	}
	save := func(text string, mode os.FileMode) {
		t.Helper()
		if err := errors.Join(os.WriteFile(file+".new", []byte(text), mode), os.Chmod(file+".new", mode), os.Rename(file+".new", file)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, one, two int) {
		t.Helper()
		if a, b := register(string(first)), register(executorToken); a != one || b != two {
			t.Errorf("%s: %d and %d, want %d and %d", when, a, b, one, two)
		}
	}
	check("at first", 200, 401)
	save(string(first)+executorToken+"\n", 0o600)
	check("one added", 200, 200)
	save(executorToken+"\n", 0o600)
	check("one revoked", 401, 200)
	save("short\n", 0o600)
	check("a file that is wrong", 401, 200)
	save(string(first), 0o644)
	check("one that others can read", 401, 200)
	save(string(first), 0o600)
	check("put right", 200, 401)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	check("no file", 200, 401)
}
