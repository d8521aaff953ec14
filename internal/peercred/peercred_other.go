//go:build !linux && !darwin

package peercred

import "errors"

func get(int) (Cred, error) {
	return Cred{}, errors.ErrUnsupported
}
