package team

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// The configuration in deploy/compose.yaml starts a server on an empty database and prints the set-up
// link, listening beyond this machine; only addresses and files are others here.
func TestTheConfigurationOfCompose(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "    content: |\n")
	var lines []string
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "      ") {
			break
		}
		lines = append(lines, line[6:])
	}
	dsn, bucket, dir := lab.Postgres(t), lab.S3(t), t.TempDir()
	put := func(name string, content []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := make([]byte, 32)
	rand.Read(key)
	used := strings.NewReplacer(
		"postgres://thole@postgres/thole", dsn, "/run/secrets/database", password(t, dsn, "word"), "/run/secrets/objects", put("s3.key", []byte(bucket.SecretKey)), "/run/secrets/vault", put("vault.key", key),
		"http://objects:9000", "http://"+bucket.Endpoint, `bucket = "thole"`, `bucket = "`+bucket.Bucket+`"`, `access_key = "thole"`, `access_key = "`+bucket.AccessKey+`"`, ":7433\"", ":0\"", ":7434\"", ":0\"",
	).Replace(strings.Join(lines, ""))
	used = regexp.MustCompile(`public_url = .*`).ReplaceAllString(used, `public_url = "http://127.0.0.1:1"`) // of the proxy
	h := home.New(t)
	s := serve(t, h, "--config", put("team.toml", []byte(used)))
	if s.set == "" || !strings.HasPrefix(s.listen, "[::]:") && !strings.HasPrefix(s.listen, "0.0.0.0:") {
		t.Errorf("listens on %s, set-up link %q", s.listen, s.set)
	}
	thread, _ := run(t, h, 0, "-q", "thread", "start", "--empty", "--profile", "full")
	run(t, h, 0, "thread", "send", thread, "sim: write notes.txt kept")
	run(t, h, 0, "executor", "sync", thread) // to the bucket
}
