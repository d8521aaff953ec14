package config

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/strictjson"
)

// Bound records in a home whose rows are in PostgreSQL which store that is: without it a
// command that finds no server running would begin an empty one in the home, and a
// configuration that was changed by mistake would serve the home's executors from another
// database.
type Bound struct {
	Store  string `json:"store"`            // the id of the store
	Config string `json:"config,omitempty"` // the configuration file that was named, "" for the home's own
}

// BoundFile is where a home keeps it.
func BoundFile(home string) string { return filepath.Join(home, "store.json") }

// BoundTo is the store that a home was bound to; nil: its own.
func BoundTo(home string) (*Bound, error) {
	text, err := os.ReadFile(BoundFile(home))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var b Bound
	if err == nil {
		err = strictjson.Unmarshal(text, &b)
	}
	if err == nil && b.Store == "" {
		err = errors.New("it has no store id")
	}
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "%s does not say which store the home belongs to: %w", BoundFile(home), err).
			WithHint("thole serve --config FILE writes it again after you removed it")
	}
	return &b, nil
}

// Bind binds a home to a store, durably.
func Bind(home string, b Bound) error {
	text, err := json.Marshal(b)
	if err == nil {
		err = atomicfile.Write(BoundFile(home), append(text, '\n'), 0o600)
	}
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "record the store of the home: %w", err)
	}
	return nil
}
