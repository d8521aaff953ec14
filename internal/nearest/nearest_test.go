package nearest

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	words := []string{"thread", "threads", "token", "usage", "up", "http.listen", "timeout"}
	for word, want := range map[string]string{
		"thraed": "thread", "tread": "thread", "THREAD": "thread", "tokne": "token", "usgae": "usage", "htpp.listen": "http.listen",
		"timout": "timeout", "xyzzy": "", "": "", "u": "up", "hread": "thread", "threds": "threads",
	} {
		if got := strings.Join(Of(word, words), " "); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if d := distance("ab", "ba"); d != 1 {
		t.Errorf("a swap counts %d", d)
	}
}
