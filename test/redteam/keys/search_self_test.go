//go:build linux

package keys

import (
	"encoding/base64"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/workspace"
)

// What is planted is found, in whatever form and place.
func TestTheSearchFinds(t *testing.T) {
	const word = "qzk7d1c04c6f1a2b"
	long := strings.Repeat("many words that shrink. ", 1000)
	packed, smaller := workspace.Compress([]byte(long + word + long))
	if !smaller {
		t.Fatal("nothing was compressed")
	}
	for name, text := range map[string]string{
		"plain": "a" + word + "b", "packed": "head" + string(packed), "hex": hex.EncodeToString([]byte(word)),
		"wide":     strings.Join(strings.Split(word, ""), "\x00") + "\x00",
		"base64 0": base64.StdEncoding.EncodeToString([]byte("abc" + word + "xyz")),
		"base64 1": base64.URLEncoding.EncodeToString([]byte("a" + word)),
		"base64 2": base64.RawStdEncoding.EncodeToString([]byte("ab" + word + "z")),
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := newSearch(word)
		if err := s.tree(dir, watch()); err != nil || len(s.found) == 0 {
			t.Errorf("%s: found %v, %v", name, s.found, err)
		}
		if s := newSearch("qzk7ffffffffffff"); s.tree(dir, watch()) != nil || len(s.found) > 0 {
			t.Errorf("%s: found %v", name, s.found)
		}
	}

	// In memory alone: what a process has read, in its third page of it.
	cmd := exec.Command("/usr/bin/python3", "-c", `import sys; x = sys.stdin.buffer.readline(); y = b"-" * 10000 + x[::-1]; x = None; print("read", flush=True); sys.stdin.read()`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	back := []byte(word + "\n")
	for i, j := 0, len(back)-2; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	if _, err := in.Write(back); err != nil {
		t.Fatal(err)
	}
	s := newSearch(word)
	poll.Until(t, "the word in memory", func() bool {
		_ = s.process(cmd.Process.Pid, watch())
		return len(s.found) > 0
	})
	if err := s.process(cmd.Process.Pid, watch("a word that is not there")); err == nil {
		t.Error("a control that is missing was not missed")
	}
}
