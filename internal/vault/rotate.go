package vault

import (
	"context"

	thole "github.com/tholehq/thole"
)

// Rotation is what a change of the wrapping key did.
type Rotation struct {
	KEK  string `json:"key_id" doc:"of the new key"`
	Keys int    `json:"data_keys" doc:"that were wrapped again"`
	Kept string `json:"kept,omitempty" doc:"where the old key is, for backups from before"`
}

// Rotate wraps every data key with a new key while secrets are used as before. Killed at
// any point it leaves every item open, under the old key or the new one, and Resume or
// another Rotate goes on.
func (v *Vault) Rotate(ctx context.Context, actor thole.Actor) (Rotation, error) {
	if err := v.manages(ctx, actor, Owner{Kind: OfPlatform}); err != nil {
		return Rotation{}, err
	}
	r, ok := v.keys.(Rotator)
	if !ok {
		return Rotation{}, thole.Errorf(thole.CodeUnsupported, "the vault's key is not changed here").WithHint("change it where it is kept")
	}
	return v.rotate(ctx, actor, r)
}

// Resume finishes a rotation that was interrupted, if there is one.
func (v *Vault) Resume(ctx context.Context) error {
	r, ok := v.keys.(Rotator)
	if !ok {
		return nil
	}
	begun, err := r.Rotating(ctx)
	if err != nil || !begun {
		return err
	}
	_, err = v.rotate(ctx, thole.SystemActor, r)
	return err
}

func (v *Vault) rotate(ctx context.Context, actor thole.Actor, r Rotator) (done Rotation, err error) {
	v.rotating.Lock()
	defer v.rotating.Unlock()
	if err := v.unlocked(ctx); err != nil {
		return done, err
	}
	if done.KEK, err = v.nextKey(ctx, r); err != nil {
		return done, err
	}
	for { // until none is left, also of those that were added meanwhile
		all, err := v.store.Keys(ctx)
		if err != nil {
			return done, err
		}
		left := 0
		for _, k := range all {
			if k.KEK == done.KEK {
				continue
			}
			left++
			switch err := v.rewrap(ctx, actor, k); thole.CodeOf(err) {
			case "":
				done.Keys++
			case thole.CodeConflict: // another did it, or its last item was revoked
			default:
				return done, err
			}
		}
		if left == 0 {
			break
		}
	}
	done.Kept, err = r.Settle(ctx)
	return done, err
}

func (v *Vault) nextKey(ctx context.Context, r Rotator) (string, error) {
	v.wrapping.Lock()
	defer v.wrapping.Unlock()
	if err := v.keys.Make(ctx); err != nil {
		return "", err
	}
	return r.Next(ctx)
}

func (v *Vault) rewrap(ctx context.Context, actor thole.Actor, was Key) error {
	plain, err := v.keys.Unwrap(ctx, was.KEK, was.Wrapped, was.words()...)
	if err != nil {
		return err
	}
	defer clear(plain)
	k := was
	if k.KEK, k.Wrapped, err = v.keys.Wrap(ctx, plain, k.words()...); err != nil {
		return err
	}
	return v.store.RewrapKeyIf(ctx, was, k, Change{Subject: k.ID, At: v.time(), Actor: actor, Event: eventRewrap, From: was.KEK, To: k.KEK})
}
