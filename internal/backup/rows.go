package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
)

// counted are the tables whose rows are compared.
var counted = []string{
	"users", "threads", "turns", "thread_events", "thread_items", "asks", "thread_queue", "turn_queue", "workspace_snapshots",
	"delivery_jobs", "delivery_batches", "delivery_attempts", "artifacts",
}

// countRows counts the rows of a store; tables that it does not have are left out.
func countRows(ctx context.Context, path string) (map[string]int64, error) {
	out := map[string]int64{}
	for _, table := range counted {
		rows, err := sqldb.Peek(ctx, path, table, "select count(*) from "+table)
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			continue
		}
		if out[table], err = strconv.ParseInt(rows[0], 10, 64); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// missing is thole.CodeNotFound if the store in dir names a file that dir does not have,
// and an error if one is not what the store says.
func missing(ctx context.Context, dir string, objects bool) error {
	path := filepath.Join(dir, store.FileName)
	if objects {
		refs, err := sqldb.Peek(ctx, path, "workspace_refs", "select distinct size || ' ' || object_key from workspace_refs")
		if err != nil {
			return err
		}
		for _, ref := range refs {
			size, key, _ := strings.Cut(ref, " ")
			if err := check(filepath.Join(dir, "objects", "data", filepath.FromSlash(key)), size, ""); err != nil {
				return err
			}
		}
	}
	artifacts, err := sqldb.Peek(ctx, path, "artifacts", "select size_bytes || ' ' || sha256 || ' ' || path from artifacts where removed_at = 0")
	if err != nil {
		return err
	}
	for _, row := range artifacts {
		part := strings.SplitN(row, " ", 3)
		if err := check(filepath.Join(dir, "artifacts", part[2]), part[0], part[1]); err != nil {
			return err
		}
	}
	return nil
}

// check compares a file with what the store says of it.
func check(path, size, sum string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return thole.Errorf(thole.CodeNotFound, "the store names a file that is missing: %s", path).WithHint("thole doctor looks at the home")
	}
	if err != nil {
		return failed("look at "+path, err)
	}
	if strconv.FormatInt(info.Size(), 10) != size {
		return damaged("%s has %d bytes, and the store says %s", path, info.Size(), size)
	}
	if sum == "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return failed("read "+path, err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return failed("read "+path, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != sum {
		return damaged("%s has another content than the store says", path)
	}
	return nil
}

func damaged(text string, args ...any) error {
	return thole.Errorf(thole.CodeUnavailable, text, args...).WithHint("use another backup")
}
