package httpapi

import (
	"context"
	"encoding/json"
	"errors"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/vault"
)

// errUnfinished: the first request with a key still runs.
func errUnfinished() error {
	return thole.Errorf(thole.CodeConflict, "the first request with this Idempotency-Key has not finished").WithHint("repeat it in a moment")
}

// keyReused reports whether a key came with another request than its first one.
func keyReused(err error) bool {
	return errors.Is(err, store.ErrKeyReused) || errors.Is(err, thread.ErrKeyReused)
}

// once runs a create under its Idempotency-Key; request is what was asked for, and
// another one under the same key is refused. Only a refusal that had no effect frees
// the key. After a crash in the middle create runs again: it must find what it made.
func once[T any](ctx context.Context, s *Server, scope, key string, request any, create func() (T, error)) (T, error) {
	var v T
	if key == "" {
		return create()
	}
	user := actorOf(ctx).User
	result, fresh, err := s.cfg.Keys.Begin(ctx, user, scope, key, sum(request))
	if err != nil {
		return v, err
	}
	if !fresh {
		if result == "" {
			return v, errUnfinished()
		}
		return v, strictjson.Unmarshal([]byte(result), &v)
	}
	v, err = create()
	after := context.WithoutCancel(ctx)
	if err != nil {
		code := thole.CodeOf(err)
		if code != thole.CodeInternal && code != thole.CodeUnavailable || errors.Is(err, vault.ErrLocked) {
			if ferr := s.cfg.Keys.Forget(after, user, scope, key); ferr != nil {
				err = errors.Join(err, ferr)
			}
		}
		return v, err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return v, err
	}
	return v, s.cfg.Keys.Finish(after, user, scope, key, string(b))
}
