package version

import "testing"

func TestOlder(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"0.99.0", "0.135.0", true}, {"0.135.0", "0.135.0", false}, {"0.135.1", "0.135.0", false}, {"0.9", "0.135.0", true},
		{"1.0.0", "0.135.0", false}, {"0.134.9-alpha.2", "0.135.0", true}, {"", "0.135.0", false}, {"dev", "0.135.0", false}, {"0.136.0", "0.135.9", false},
	} {
		if Older(tc.a, tc.b) != tc.want {
			t.Errorf("Older(%q, %q) is not %v", tc.a, tc.b, tc.want)
		}
	}
}
