// Package faulttest holds a port with every shape of method the generator must
// handle, for its tests. Nothing else uses it.
package faulttest

import (
	"context"
	"io"
	"time"
)

// Key names a value.
type Key string

// Reader is the reading half of the port.
type Reader interface {
	Get(ctx context.Context, k Key) (value int, found bool, err error)
	Len() int
}

// Ledger is the port.
type Ledger interface {
	Reader
	Add(ctx context.Context, k Key, n ...int) error
	Each(visit func(k Key, n int) error, limits map[Key][]int) error
	Copy(to io.Writer, at *time.Time, done chan<- struct{}) (int64, error)
	Touch(a, b Key)
}
