package backup

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/store"
)

// What a copy has besides the store. Files in trees get their place by a rename and are
// never written again, so a second name keeps what they were.
var (
	trees    = []string{"objects/data", "artifacts", "uploads", "calls"}
	gitTrees = []string{"shelves", "mirrors"} // may lose files while they are read
	settings = []string{"config.toml", "prices.toml"}
)

// Bounds of how often is read what changes meanwhile.
const (
	maxStores = 3
	maxPasses = 20
)

// staging is the directory in which a copy is gathered.
type staging struct{ home, dir string }

// fill gathers one consistent state and returns the store's schema. Files that the copied
// store names were there before it (linked before) or came shortly before (linked after).
func (s staging) fill(ctx context.Context, objects bool) (schema int64, err error) {
	for range maxStores {
		if err := s.linkTrees(ctx, objects); err != nil {
			return 0, err
		}
		path := filepath.Join(s.dir, store.FileName)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, failed("back up", err)
		}
		r, err := store.Backup(ctx, filepath.Join(s.home, store.FileName), path)
		if err != nil {
			return 0, err
		}
		if err := s.linkTrees(ctx, objects); err != nil {
			return 0, err
		}
		if err = missing(ctx, s.dir, objects); err == nil {
			// Shelves are read after the store: what it names is on them then.
			return r.Schema, s.linkRest(ctx)
		}
		if ctx.Err() != nil || thole.CodeOf(err) != thole.CodeNotFound {
			return 0, err
		}
	}
	return 0, missing(ctx, s.dir, objects)
}

func (s staging) linkTrees(ctx context.Context, objects bool) error {
	for _, tree := range trees {
		if tree == "objects/data" && !objects {
			continue
		}
		if _, err := s.link(ctx, tree, func(string) bool { return true }); err != nil {
			return err
		}
	}
	return nil
}

func (s staging) linkRest(ctx context.Context) error {
	for _, name := range settings {
		if err := s.linkOne(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failed("back up "+name, err)
		}
	}
	for _, tree := range gitTrees {
		if err := s.linkGit(ctx, tree); err != nil {
			return err
		}
	}
	return nil
}

// linkGit links repositories so that every ref has its objects: names first, then
// objects, and again from the start if a file went meanwhile, which packing does.
func (s staging) linkGit(ctx context.Context, tree string) error {
	for range maxPasses {
		if err := os.RemoveAll(filepath.Join(s.dir, tree)); err != nil {
			return failed("back up "+tree, err)
		}
		all := map[string]bool{}
		for _, objects := range []bool{false, true} {
			had, err := s.link(ctx, tree, func(path string) bool { return strings.Contains(path, "/objects/") == objects })
			if err != nil {
				return err
			}
			maps.Copy(all, had)
		}
		now, err := s.list(ctx, tree)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(all)), func(path string) bool { return strings.Contains(path, "/objects/") && !now[path] }) {
			return nil
		}
	}
	return thole.Errorf(thole.CodeBusy, "back up %s: it changed each of %d times that it was read", tree, maxPasses).WithHint("try again when fewer turns run")
}

// list returns the files below a directory of the home; those that are only on their way
// into their place are left out.
func (s staging) list(ctx context.Context, tree string) (map[string]bool, error) {
	all := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(s.home, tree), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // went while it was read
			return nil
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		name, err := filepath.Rel(s.home, path)
		if err == nil && d.IsDir() && slices.Contains(gitTrees, tree) { // git wants its empty ones too
			return keepMode(d, filepath.Join(s.dir, name))
		}
		if err == nil && d.Type().IsRegular() && !strings.HasSuffix(name, ".lock") && !strings.Contains(d.Name(), "tmp_") {
			all[filepath.ToSlash(name)] = true
		}
		return err
	})
	if err != nil {
		return nil, failed("read "+tree, err)
	}
	return all, nil
}

// link gives the files of a tree that pass a second name, and returns them.
func (s staging) link(ctx context.Context, tree string, pass func(string) bool) (map[string]bool, error) {
	all, err := s.list(ctx, tree)
	if err != nil {
		return nil, err
	}
	for name := range all {
		if !pass(name) {
			delete(all, name)
			continue
		}
		if err := s.linkOne(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, failed("back up "+name, err)
		}
	}
	return all, ctx.Err()
}

// linkOne gives one file of the home its name in the copy, if it has none there.
func (s staging) linkOne(name string) error {
	to := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	err := os.Link(filepath.Join(s.home, filepath.FromSlash(name)), to)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// keepMode makes a directory with the mode of another one. Git runs as users of their own
// who have to get there.
func keepMode(of fs.DirEntry, dir string) error {
	info, err := of.Info()
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, info.Mode().Perm()|0o700))
}
