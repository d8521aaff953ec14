package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/strictjson"
)

// maxLogin bounds a login file and what a service answers.
const maxLogin = 1 << 20

// members is a login file: a JSON object whose members are named by paths with dots.
type members map[string]any

// Kept is where a login is kept. Write replaces what Read returned last and fails where
// another value was put there meanwhile, as far as the place notices; Hold keeps other
// programs from renewing the login. Read returns an error that wraps fs.ErrNotExist
// where there is no login.
type Kept interface {
	Read(ctx context.Context) ([]byte, error)
	Hold(ctx context.Context) (release func(), err error)
	Write(ctx context.Context, login []byte) error
}

// loginFile is a login in the file of its CLI. own says that the CLI takes locks while
// it renews.
type loginFile struct {
	path string
	own  bool
}

func (f loginFile) Read(context.Context) ([]byte, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxLogin+1))
}

func (f loginFile) Hold(ctx context.Context) (func(), error) { return hold(ctx, f.path, f.own) }

func (f loginFile) Write(_ context.Context, login []byte) error {
	return atomicfile.Write(f.path, login, 0o600)
}

func decodeLogin(data []byte) (members, error) {
	if len(data) > maxLogin {
		return nil, fmt.Errorf("it is longer than %d bytes", maxLogin)
	}
	if err := strictjson.Unmarshal(data, new(map[string]any)); err != nil {
		return nil, fmt.Errorf("it is not a JSON object: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var m members
	if err := d.Decode(&m); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, errors.New("it is null")
	}
	return m, nil
}

func encodeLogin(m members) ([]byte, error) {
	out, err := json.MarshalIndent(m, "", "  ")
	return append(out, '\n'), err
}

func (m members) get(path string) any {
	name, rest, deep := strings.Cut(path, ".")
	if !deep {
		return m[name]
	}
	sub, _ := m[name].(map[string]any)
	return members(sub).get(rest)
}

func (m members) text(path string) string {
	s, _ := m.get(path).(string)
	return s
}

func (m members) set(path string, v any) {
	name, rest, deep := strings.Cut(path, ".")
	if !deep {
		m[name] = v
		return
	}
	sub, ok := m[name].(map[string]any)
	if !ok {
		sub = map[string]any{}
		m[name] = sub
	}
	members(sub).set(rest, v)
}
