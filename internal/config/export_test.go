package config

import (
	"reflect"
	"strings"
)

// FieldOf names the field that holds a key, with its type: config.Daemon.IdleExit.
func (c *Config) FieldOf(key string) string {
	v, name := reflect.TypeOf(*c), ""
	for part := range strings.SplitSeq(key, ".") {
		for i := range v.NumField() {
			if f := v.Field(i); f.Tag.Get("toml") == part {
				name = v.String() + "." + f.Name
				if f.Type.Kind() == reflect.Struct {
					v = f.Type
				}
				break
			}
		}
	}
	return name
}
