package setup

import (
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider/ownconfig"
	"github.com/tholehq/thole/internal/strictjson"
)

// MaxKey bounds a file that holds a key, maxSettings a file of settings.
const (
	MaxKey      = 64 << 10
	maxSettings = 4 << 20
)

// Read returns a regular file of the user that is not longer than it may be.
func Read(path string, most int64) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > most {
		return nil, thole.Errorf(thole.CodeInvalid, "%s is not a regular file of at most %d bytes", path, most)
	}
	return os.ReadFile(path)
}

// settings reads a file of a CLI's settings, an empty object where there is none.
func settings(path string) (map[string]any, error) {
	out := map[string]any{}
	data, err := Read(path, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		if strings.HasSuffix(path, ".toml") {
			err = toml.Unmarshal(data, &out)
		} else {
			err = strictjson.Unmarshal(ownconfig.Uncommented(data), &out)
		}
	}
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "read %s: %w", path, err).WithHint("correct that file, or set gateway.upstreams")
	}
	return out, nil
}

func text(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

func object(m map[string]any, name string) map[string]any {
	sub, _ := m[name].(map[string]any)
	return sub
}

// headers adds those of an object whose values are texts; value says what each means.
func headers(out http.Header, m map[string]any, value func(string) string) {
	for _, name := range sortedKeys(m) {
		if v, _ := m[name].(string); value(v) != "" {
			out.Set(name, value(v))
		}
	}
}

func same(s string) string { return s }

func query(u *url.URL, m map[string]any) {
	q := u.Query()
	for _, name := range sortedKeys(m) {
		if v, _ := m[name].(string); v != "" {
			q.Set(name, v)
		}
	}
	u.RawQuery = q.Encode()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
