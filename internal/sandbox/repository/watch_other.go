//go:build !linux

package repository

import "errors"

// Watch is Linux's alone.
func (g *Guards) Watch(func()) (func(), error) { return nil, errors.New("boxes need Linux") }
