package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tholehq/thole/internal/strictjson"
)

// maxLogin bounds a login file and what a service answers.
const maxLogin = 1 << 20

// members is a login file: a JSON object whose members are named by paths with dots.
type members map[string]any

func readLogin(path string) (members, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxLogin+1))
	if err != nil {
		return nil, err
	}
	return decodeLogin(data)
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
