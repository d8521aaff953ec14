package config

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/nearest"
)

// Entry is one key with its value and origin, for `thole config show`.
type Entry struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// Entries lists every key in the order of the struct.
func (c *Config) Entries() []Entry {
	var out []Entry
	_ = c.walk(func(key string, v reflect.Value) error {
		out = append(out, Entry{Key: key, Value: format(v), Origin: c.Origin(key)})
		return nil
	})
	return out
}

// Variable is the environment variable of a key.
func Variable(key string) string {
	return "THOLE_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

func (c *Config) decode(file, text string) error {
	meta, err := toml.Decode(text, c)
	var parse toml.ParseError
	switch {
	case errors.As(err, &parse):
		return thole.Errorf(thole.CodeInvalid, "%s line %d: %s", file, parse.Position.Line, parse.Message).WithHint("fix the file, or move it away")
	case err != nil:
		return thole.Errorf(thole.CodeInvalid, "%s: %w", file, err).WithHint("fix the file, or move it away")
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return thole.Errorf(thole.CodeInvalid, "%s: unknown key %s", file, unknown[0]).WithHint("%s%s", c.meant(unknown[0].String()), c.siblings(unknown[0].String()))
	}
	for _, key := range meta.Keys() {
		c.origin[key.String()] = file
	}
	return nil
}

// meant is the start of a hint: the keys that a misspelt one is close to.
func (c *Config) meant(unknown string) string {
	if like := nearest.Of(unknown, c.keys()); len(like) > 0 {
		return "did you mean " + strings.Join(like, " or ") + "? "
	}
	return ""
}

func (c *Config) keys() (out []string) {
	_ = c.walk(func(key string, _ reflect.Value) error {
		out = append(out, key)
		return nil
	})
	return out
}

// siblings names the keys that stand where an unknown one does: those of its table,
// or the tables.
func (c *Config) siblings(unknown string) string {
	table, _, _ := strings.Cut(unknown, ".")
	var keys, tables []string
	_ = c.walk(func(key string, _ reflect.Value) error {
		at, name, _ := strings.Cut(key, ".")
		if at == table {
			keys = append(keys, name)
		}
		if !slices.Contains(tables, at) {
			tables = append(tables, at)
		}
		return nil
	})
	if len(keys) == 0 {
		return "the tables are " + strings.Join(tables, ", ")
	}
	return "[" + table + "] has " + strings.Join(keys, ", ")
}

// overlay applies the environment and then the flags, both keyed like the file.
func (c *Config) overlay(getenv func(string) string, flags map[string]string) error {
	known := map[string]bool{}
	err := c.walk(func(key string, v reflect.Value) error {
		known[key] = true
		if s := getenv(Variable(key)); s != "" {
			c.origin[key] = Variable(key)
			if err := parse(v, s); err != nil {
				return c.bad(key, "%s", err)
			}
		}
		if s, ok := flags[key]; ok {
			c.origin[key] = "flag"
			if err := parse(v, s); err != nil {
				return c.bad(key, "%s", err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for key := range flags {
		if !known[key] {
			return thole.Errorf(thole.CodeInvalid, "unknown config key %s", key).WithHint("thole config show lists the valid keys")
		}
	}
	return nil
}

// walk visits every leaf that is not retired, with its dotted key.
func (c *Config) walk(visit func(key string, v reflect.Value) error) error {
	var step func(prefix string, v reflect.Value) error
	step = func(prefix string, v reflect.Value) error {
		for i := range v.NumField() {
			name := v.Type().Field(i).Tag.Get("toml")
			if _, gone := v.Type().Field(i).Tag.Lookup("retired"); name == "" || name == "-" || gone {
				continue
			}
			key, field := strings.TrimPrefix(prefix+"."+name, "."), v.Field(i)
			next := visit
			if field.Kind() == reflect.Struct {
				next = func(key string, v reflect.Value) error { return step(key, v) }
			}
			if err := next(key, field); err != nil {
				return err
			}
		}
		return nil
	}
	return step("", reflect.ValueOf(c).Elem())
}

func parse(v reflect.Value, s string) error {
	switch v.Interface().(type) {
	case string:
		v.SetString(s)
	case Private:
		v.SetString(s)
	case []string:
		v.Set(reflect.ValueOf(strings.Split(s, ",")))
	case Path:
		v.Set(reflect.ValueOf(Path(strings.Split(s, ","))))
	case time.Duration:
		d, err := time.ParseDuration(s)
		if err != nil {
			return errors.New("must be a duration such as 15m, not " + strconv.Quote(s))
		}
		v.SetInt(int64(d))
	case bool:
		b, err := strconv.ParseBool(s)
		if err != nil {
			return errors.New("must be true or false, not " + strconv.Quote(s))
		}
		v.SetBool(b)
	case Upstreams:
		u, err := parseUpstreams(s)
		if err != nil {
			return errors.New("must be an array of tables as in the file: " + err.Error())
		}
		v.Set(reflect.ValueOf(u))
	case float64:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return errors.New("must be a number, not " + strconv.Quote(s))
		}
		v.SetFloat(f)
	default:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return errors.New("must be a whole number, not " + strconv.Quote(s))
		}
		v.SetInt(n)
	}
	return nil
}

func format(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case string:
		return x
	case Private:
		return x.String()
	case []string:
		return strings.Join(x, ",")
	case Path:
		return strings.Join(x, ",")
	case time.Duration:
		return x.String()
	case bool:
		return strconv.FormatBool(x)
	case Upstreams:
		return x.names()
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	default:
		return strconv.FormatInt(v.Int(), 10)
	}
}

// retired judges executor.bubblewrap, which executor.isolation replaced: on and auto
// mean the box that is the default now. Off is refused: that agents run without
// walls must be typed in words that say so.
func retired(origin, value string) error {
	switch value {
	case "", "on", "auto":
		return nil
	case "off":
		return thole.Errorf(thole.CodeInvalid, "config key executor.bubblewrap (from %s) is gone, and off is not carried over: agents would see and change everything that you can", origin).
			WithHint("remove it to run agents in a box, or type isolation = \"none\" in its place")
	}
	return thole.Errorf(thole.CodeInvalid, "config key executor.bubblewrap (from %s) is gone", origin).WithHint("remove it; executor.isolation is box or none")
}
