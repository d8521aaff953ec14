package executord

import "testing"

func TestOnLoopback(t *testing.T) {
	for model, want := range map[string]uint16{"127.0.0.1:4000": 4000, "LOCALHOST:4001": 4001, "[::1]:4002": 4002, "127.9.9.9:1": 1, "[::ffff:127.0.0.1]:5": 5,
		"10.0.0.5:8000": 0, "models.example.com:443": 0, "localhost.example.com:443": 0, "localhost:99999": 0, "localhost": 0} {
		if port, ok := onLoopback(model); ok != (want != 0) || ok && port != want {
			t.Errorf("%s: %d %v", model, port, ok)
		}
	}
}
