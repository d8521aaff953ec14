package manager

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/unpack"
)

// Upload is what a client sent, stored as a tree that threads begin with. It is described
// by an object of its own, which is written last: without it there is no upload.
type Upload struct {
	Files   int             `json:"files"`
	Links   int             `json:"links"`
	Bytes   int64           `json:"bytes"`
	Tree    objects.Sum     `json:"tree"`
	Refs    []workspace.Ref `json:"refs"`
	Created time.Time       `json:"created"`
}

// uploadRoot is the prefix of all uploads. A user's are below the user's own.
const uploadRoot = "uploads/"

const (
	describing = "upload.json"
	maxUpload  = 16 << 20 // of its description
)

func uploadPrefix(user thole.UserID, id string) (string, error) {
	if !thole.ValidUUID(id) {
		return "", thole.Errorf(thole.CodeInvalid, "invalid upload id %q", id)
	}
	key, err := objects.Key(string(user), id)
	return uploadRoot + key + "/", err
}

// StoreUpload unpacks an archive into an empty directory and stores what it holds. The
// directory is the caller's to remove.
func (m *Manager) StoreUpload(ctx context.Context, user thole.UserID, id, archive, dir string) (up Upload, err error) {
	prefix, err := uploadPrefix(user, id)
	if err != nil {
		return up, err
	}
	do := unpack.Unpack
	if m.cfg.Apart != nil {
		do = m.cfg.Apart.Unpack
	}
	got, err := do(ctx, unpack.Request{Archive: archive, Dir: dir, Bounds: unpack.Default})
	if err != nil {
		return up, err
	}
	near, quiet, release, err := m.side(ctx, Target{Dir: dir})
	if err != nil {
		return up, err
	}
	defer release()
	scan, err := near.Scan(ctx, workspace.ScanRequest{Reason: "upload", Quiet: quiet})
	if err != nil {
		return up, err
	}
	up = Upload{Files: got.Files, Links: got.Links, Bytes: got.Bytes, Tree: scan.Tree, Created: m.cfg.Now().UTC()}
	if up.Refs, err = m.push(ctx, near, prefix, scan); err != nil {
		return up, fmt.Errorf("store upload: %w", err)
	}
	if err := m.present(ctx, up.Refs); err != nil {
		return up, err
	}
	body, err := json.Marshal(up)
	if err != nil {
		return up, err
	}
	return up, m.cfg.Objects.Put(ctx, prefix+describing, bytes.NewReader(body), int64(len(body)))
}

// Upload describes an upload of a user; CodeNotFound if there is none of that id.
func (m *Manager) Upload(ctx context.Context, user thole.UserID, id string) (up Upload, err error) {
	prefix, err := uploadPrefix(user, id)
	if err != nil {
		return up, err
	}
	body, err := m.cfg.Objects.Get(ctx, prefix+describing, 0, -1)
	if isNotFound(err) {
		return up, thole.Errorf(thole.CodeNotFound, "there is no upload %s", id).WithHint("uploads that no thread was made of are removed after a day; send it again")
	}
	if err != nil {
		return up, err
	}
	defer body.Close()
	return up, strictjson.Read(io.LimitReader(body, maxUpload), &up)
}

// ExpireUploads removes uploads that were made before a time and are not needed, and what
// uploads that broke off left.
func (m *Manager) ExpireUploads(ctx context.Context, before time.Time, needed func(ctx context.Context, user thole.UserID, id string) (bool, error)) (int, error) {
	type upload struct{ user, id string }
	keys := map[upload][]string{}
	young := map[upload]bool{}
	for after := ""; ; {
		page, err := m.cfg.Objects.List(ctx, uploadRoot, after, 1000)
		if err != nil {
			return 0, err
		}
		for _, info := range page {
			after = info.Key
			at := strings.Split(strings.TrimPrefix(info.Key, uploadRoot), "/")
			if len(at) != 3 || !thole.ValidUUID(at[1]) {
				continue // no upload
			}
			u := upload{at[0], at[1]}
			keys[u] = append(keys[u], info.Key)
			if !info.Modified.Before(before) {
				young[u] = true
			}
		}
		if len(page) < 1000 {
			break
		}
	}
	removed := 0
	for u, list := range keys {
		if young[u] {
			continue
		}
		if keep, err := needed(ctx, thole.UserID(u.user), u.id); err != nil || keep {
			if err != nil {
				return removed, err
			}
			continue
		}
		var err error
		for _, key := range list {
			err = errors.Join(err, m.cfg.Objects.Delete(ctx, key))
		}
		if err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}
