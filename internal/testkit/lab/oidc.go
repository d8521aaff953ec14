package lab

import (
	"bufio"
	"bytes"
	_ "embed" // the script
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// OIDCProviderVersion is that of the provider of logins of npm; scripts/lab gets the same one.
const OIDCProviderVersion = "9.13.3"

//go:embed oidc.mjs
var oidcScript []byte

// OIDCProvider is a real provider of logins. It knows one client, thole with the secret hush,
// and everybody: claims say what it says of a user, by login.
type OIDCProvider struct {
	Issuer string
	in     io.Writer
}

// NewOIDCProvider starts one. It answers after Serve.
func NewOIDCProvider(t testing.TB) *OIDCProvider {
	t.Helper()
	node, err := exec.LookPath("node")
	Need(t, "oidc-provider", err)
	from, err := cached("oidc-provider-"+OIDCProviderVersion+"/node_modules", "oidc")
	Need(t, "oidc-provider", err)
	use(t, "oidc-provider", OIDCProviderVersion)
	dir := t.TempDir()
	script := filepath.Join(dir, "provider.mjs")
	if err := os.WriteFile(script, oidcScript, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(from, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, script)
	cmd.Env = []string{"HOME=" + dir}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the provider of logins: %s", &errs)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return &OIDCProvider{Issuer: line[:len(line)-1], in: in}
}

// Serve lets it answer for a server at page, with what it says of users.
func (p *OIDCProvider) Serve(t testing.TB, page string, claims map[string]map[string]any) {
	t.Helper()
	if err := json.NewEncoder(p.in).Encode(map[string]any{"page": page, "claims": claims}); err != nil {
		t.Fatal(err)
	}
}
