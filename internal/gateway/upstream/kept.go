package upstream

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/setup"
	"github.com/tholehq/thole/internal/vault"
)

// Vault is what is needed of *vault.Vault.
type Vault interface {
	Candidates(ctx context.Context, who thole.Owner, kind vault.Kind, provider string) ([]vault.Item, error)
	Open(ctx context.Context, id vault.ItemID, use vault.Use) (vault.Secret, error)
	Replace(ctx context.Context, id vault.ItemID, etag string, value []byte) (vault.Item, error)
	MarkNeedsLogin(ctx context.Context, id vault.ItemID, etag string) (vault.Item, error)
}

var _ Vault = (*vault.Vault)(nil)

// kept are the routes that the vault has a credential for: the first of the user's, the
// project's, the app's and the platform's. One that needs a login is not passed over: the
// next belongs to another owner.
func (r *Routes) kept(ctx context.Context, c gateway.Claim) (all []way, err error) {
	if r.cfg.Vault == nil {
		return nil, nil
	}
	items, err := r.cfg.Vault.Candidates(ctx, c.Owner, vault.ProviderAuth, "")
	if err != nil {
		return nil, err
	}
	first := func(names ...string) (vault.Item, bool) {
		i := slices.IndexFunc(items, func(i vault.Item) bool { return slices.Contains(names, i.Provider) })
		if i < 0 {
			return vault.Item{}, false
		}
		return items[i], true
	}
	if s, ok := setup.OfCLI(c.Provider); ok {
		item, ok := first(c.Provider, s.Name)
		if !ok {
			return nil, nil
		}
		w, err := r.keptLogin(ctx, c, s, item)
		return []way{w}, err
	}
	if setup.RouteOf(c.Provider, "") == "" {
		return nil, nil
	}
	for _, s := range setup.Services() {
		if item, ok := first(s.Name); ok && s.Name != c.Provider {
			get := func(ctx context.Context) (string, error) { return r.key(ctx, c, item) }
			all = append(all, r.keyItem(c.Provider, s, item, get))
		}
	}
	if item, ok := first(c.Provider); ok {
		more, err := r.keptEntries(ctx, c, item)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// keptLogin is the route of a CLI with one model service: by a key, or by its whole
// login.
func (r *Routes) keptLogin(ctx context.Context, c gateway.Claim, s setup.Service, item vault.Item) (way, error) {
	value, err := r.open(ctx, c, item)
	if err != nil {
		return way{}, err
	}
	if !provider.IsLoginFile([]byte(value)) {
		return r.keyItem(c.Provider, s, item, setup.Constant(value)), nil
	}
	at := &vaultLogin{r: r, c: c, item: item, value: []byte(value)}
	w, err := r.user().Login(ctx, c.Provider, at, "vault item "+item.Name, "", at.needsLogin)
	if err != nil {
		return way{}, err
	}
	return wayOf(w).item(item), nil
}

// keptEntries are the routes of a login with a key for each model provider, or of the
// key of a CLI's own service.
func (r *Routes) keptEntries(ctx context.Context, c gateway.Claim, item vault.Item) (all []way, err error) {
	value, err := r.open(ctx, c, item)
	if err != nil {
		return nil, err
	}
	if !provider.IsLoginFile([]byte(value)) {
		return []way{r.keyItem(c.Provider, setup.OwnService(c.Provider), item, setup.Constant(value))}, nil
	}
	keys, err := r.cfg.Login.Entries(ctx, c.Provider, &vaultLogin{r: r, c: c, item: item, value: []byte(value)})
	if err != nil {
		return nil, err
	}
	for _, s := range setup.Services() {
		if key := keys[s.Name]; key != "" {
			all = append(all, r.keyItem(c.Provider, s, item, setup.Constant(key)))
		}
	}
	return all, nil
}

// Refused takes note that a service refused a login that was renewed just before. It is
// for gateway.Config.
func (r *Routes) Refused(ctx context.Context, c gateway.Claim, u gateway.Upstream) {
	if u.Item == "" {
		if r.cfg.Login.Renewed != nil {
			r.cfg.Login.Renewed(c.Provider, thole.Errorf(thole.CodeForbidden, "the login of %s: %w", c.Provider, provider.ErrNeedsLogin))
		}
		return
	}
	items, err := r.cfg.Vault.Candidates(ctx, c.Owner, vault.ProviderAuth, "")
	i := slices.IndexFunc(items, func(i vault.Item) bool { return string(i.ID) == u.Item })
	if err == nil && i >= 0 {
		_, _ = r.cfg.Vault.MarkNeedsLogin(ctx, items[i].ID, items[i].ETag)
	}
}

// item notes for the record which item the credential is from.
func (w way) item(i vault.Item) way {
	for n := range w.upstreams {
		w.upstreams[n].Item = string(i.ID)
	}
	return w
}

// keyItem is a route by a key of the vault, which is marked when the service refuses it.
func (r *Routes) keyItem(cli string, s setup.Service, i vault.Item, get func(context.Context) (string, error)) way {
	w := wayOf(setup.Key(cli, s, "vault item "+i.Name, get)).item(i)
	key := w.upstreams[0].Sign
	w.upstreams[0].Sign = func(ctx context.Context, h http.Header, refused bool) error {
		err := key(ctx, h, refused)
		if errors.Is(err, provider.ErrNeedsLogin) {
			_, _ = r.cfg.Vault.MarkNeedsLogin(ctx, i.ID, i.ETag)
		}
		return err
	}
	return w
}

// open returns the value of an item.
func (r *Routes) open(ctx context.Context, c gateway.Claim, item vault.Item) (string, error) {
	if item.State == vault.NeedsLogin {
		return "", thole.Errorf(thole.CodeForbidden, "secret %s: %w", item.Name, provider.ErrNeedsLogin).WithHint("log in again and set it again: thole secret set")
	}
	s, err := r.cfg.Vault.Open(ctx, item.ID, vault.Use{Thread: c.Thread, Turn: c.Turn, Executor: c.Executor, Purpose: "gateway"})
	if err != nil {
		return "", err
	}
	defer s.Wipe()
	return string(s.Bytes()), nil
}

// key opens an item for a call. A locked vault is CodeHeld there: a person must put the
// key back, and an agent that asked again would ask for minutes.
func (r *Routes) key(ctx context.Context, c gateway.Claim, item vault.Item) (string, error) {
	value, err := r.open(ctx, c, item)
	if errors.Is(err, vault.ErrLocked) {
		return "", thole.Errorf(thole.CodeHeld, "secret %s: %w", item.Name, vault.ErrLocked).WithHint("thole doctor says what is wrong with its key")
	}
	return value, err
}

// vaultLogin is a login that is kept in the vault. It belongs to one call.
type vaultLogin struct {
	r    *Routes
	c    gateway.Claim
	item vault.Item
	// value is what was read last, until a call holds the login to renew it.
	value []byte
}

// Read implements provider.Kept. After Hold it looks for the item again: a person or
// another server may have replaced it.
func (v *vaultLogin) Read(ctx context.Context) ([]byte, error) {
	if v.value != nil {
		return v.value, nil
	}
	items, err := v.r.cfg.Vault.Candidates(ctx, v.c.Owner, vault.ProviderAuth, v.item.Provider)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(items, func(i vault.Item) bool { return i.ID == v.item.ID })
	if i < 0 {
		return nil, fs.ErrNotExist
	}
	v.item = items[i]
	value, err := v.r.open(ctx, v.c, v.item)
	return []byte(value), err
}

// Hold implements provider.Kept for the calls of this process. Another server is
// recognised by the item's etag.
func (v *vaultLogin) Hold(ctx context.Context) (func(), error) {
	c, _ := v.r.renewing.LoadOrStore(v.item.ID, make(chan struct{}, 1))
	turn := c.(chan struct{})
	select {
	case turn <- struct{}{}:
		v.value = nil
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements provider.Kept.
func (v *vaultLogin) Write(ctx context.Context, login []byte) error {
	now, err := v.r.cfg.Vault.Replace(ctx, v.item.ID, v.item.ETag, login)
	if err == nil {
		v.item = now
	}
	return err
}

// needsLogin marks the value that was refused. A value that was put there meanwhile has
// yet to be tried, and the vault refuses to mark it.
func (v *vaultLogin) needsLogin(ctx context.Context) {
	_, _ = v.r.cfg.Vault.MarkNeedsLogin(ctx, v.item.ID, v.item.ETag)
}
