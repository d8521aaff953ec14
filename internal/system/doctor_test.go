package system

import "testing"

// A URL without a port names the one of its scheme.
func TestAddressOfAnObjectStore(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://127.0.0.1:9000": "127.0.0.1:9000", "https://s3.example.com": "s3.example.com:https", "http://[::1]/": "[::1]:http",
	} {
		if got := endpointAddress(endpoint); got != want {
			t.Errorf("%s is at %s", endpoint, got)
		}
	}
}
