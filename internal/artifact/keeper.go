package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
)

// InlineMax is the largest result that travels inside a delivery.
const InlineMax = 16 << 10

// Keeper keeps the artifacts of one home. All methods are safe for concurrent use.
type Keeper struct {
	dir   string
	store Store
	keep  Retention
	disk  Disk
	newID func(time.Time) string
}

// Config makes a Keeper.
type Config struct {
	Dir       string // made 0700
	Store     Store
	Retention Retention
	Disk      Disk // default: the operating system's
	NewID     func(time.Time) string
}

// New opens the artifact directory.
func New(c Config) (*Keeper, error) {
	if c.Disk == nil {
		c.Disk = osDisk{}
	}
	if c.NewID == nil {
		c.NewID = func(now time.Time) string { return thole.NewID[string](now) }
	}
	if c.Retention == (Retention{}) {
		c.Retention = DefaultRetention()
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "open artifacts: %w", err)
	}
	fi, err := os.Lstat(c.Dir)
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "open artifacts: %w", err)
	}
	if !fi.IsDir() {
		return nil, thole.Errorf(thole.CodeForbidden, "artifact directory %s is not a directory of its own", c.Dir).WithHint("remove the link and start again")
	}
	return &Keeper{dir: c.Dir, store: c.Store, keep: c.Retention, disk: c.Disk, newID: c.NewID}, nil
}

// Ingested is a durable copy, not yet known to any job.
type Ingested struct {
	Record Record
	// Inline is the whole content if it may travel inside a delivery.
	Inline string
	// ReadNeeded says that the receiver has to read the artifact.
	ReadNeeded bool
}

// manifest is what is stored next to the bytes, so that they can be proven without
// the database.
type manifest struct {
	ID          thole.ArtifactID `json:"artifact_id"`
	Job         thole.JobID      `json:"source_job_id"`
	Name        string           `json:"name"`
	ContentType string           `json:"content_type"`
	Size        int64            `json:"size_bytes"`
	SHA256      string           `json:"sha256"`
	CreatedAt   time.Time        `json:"created_at"`
}

// Ingest copies a regular file into the home. When it returns nil, the bytes and
// their manifest survive a power cut and the original no longer matters. A copy
// that no job gets is removed by the sweep.
func (k *Keeper) Ingest(ctx context.Context, path string, job thole.JobID, owner thole.Owner, now time.Time) (Ingested, error) {
	src, err := openResult(path)
	if err != nil {
		return Ingested{}, err
	}
	defer src.Close()
	return k.IngestReader(ctx, src, filepath.Base(path), job, owner, now)
}

// Same reports whether a file is what an artifact was made of.
func (k *Keeper) Same(path string, r Record) (bool, error) {
	src, err := openResult(path)
	if err != nil {
		return false, err
	}
	defer src.Close()
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(src, r.Size+1))
	if err != nil {
		return false, thole.Errorf(thole.CodeInvalid, "read result file: %w", err)
	}
	return n == r.Size && hex.EncodeToString(hash.Sum(nil)) == r.SHA256, nil
}

// Take is Ingest of a file of this home that nobody writes to any more: the bytes
// get a second name where the disk can do that, and so need no room of their own.
func (k *Keeper) Take(ctx context.Context, path string, job thole.JobID, owner thole.Owner, now time.Time) (Ingested, error) {
	src, err := openResult(path)
	if err != nil {
		return Ingested{}, err
	}
	defer src.Close()
	return k.ingest(ctx, src, filepath.Base(path), job, owner, now, func(name string, content io.Reader) error {
		// The sweep takes an old file without a record for one that was left behind.
		linked := os.Chtimes(path, time.Time{}, time.Now())
		if linked == nil {
			linked = os.Link(path, filepath.Join(k.dir, name))
		}
		if linked != nil {
			return k.copy(name, content)
		}
		_, err := io.Copy(io.Discard, content)
		if err == nil {
			err = src.Sync()
		}
		return err
	})
}

// openResult opens a regular file and waits for nothing else.
func openResult(path string) (*os.File, error) {
	src, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "read result file: %w", err)
	}
	if fi, err := src.Stat(); err != nil || !fi.Mode().IsRegular() {
		_ = src.Close()
		return nil, thole.Errorf(thole.CodeInvalid, "result file %s is not a regular file", path)
	}
	return src, nil
}

// IngestReader is Ingest for bytes that are not a file.
func (k *Keeper) IngestReader(ctx context.Context, src io.Reader, name string, job thole.JobID, owner thole.Owner, now time.Time) (Ingested, error) {
	return k.ingest(ctx, src, name, job, owner, now, k.copy)
}

func (k *Keeper) copy(name string, content io.Reader) error {
	return k.write(name, func(w io.Writer) error {
		_, err := io.Copy(struct{ io.Writer }{w}, content) // only Write: a Disk sees every byte
		return err
	})
}

// ingest records content, which place reads to its end and makes durable under a
// name in the directory.
func (k *Keeper) ingest(ctx context.Context, src io.Reader, name string, job thole.JobID, owner thole.Owner, now time.Time,
	place func(name string, content io.Reader) error) (Ingested, error) {
	id := thole.ArtifactID(k.newID(now))
	r := Record{
		ID: id, Job: job, Owner: owner, Path: string(id) + ".data", Manifest: string(id) + ".json",
		Name: strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", ""), "�"), CreatedAt: now, Held: true,
	}
	hash := sha256.New()
	var head bytes.Buffer
	var size counter
	err := place(r.Path, io.TeeReader(&reader{ctx, src}, io.MultiWriter(hash, &prefix{&head, InlineMax + 1}, &size)))
	r.Size, r.SHA256 = int64(size), hex.EncodeToString(hash.Sum(nil))
	text := utf8.Valid(head.Bytes()) && !bytes.Contains(head.Bytes(), []byte{0})
	r.ContentType = contentType(name, text)
	if err == nil {
		var body []byte
		body, err = json.MarshalIndent(manifest{r.ID, r.Job, r.Name, r.ContentType, r.Size, r.SHA256, r.CreatedAt}, "", "  ")
		if err == nil {
			err = k.write(r.Manifest, func(w io.Writer) error { _, err := w.Write(append(body, '\n')); return err })
		}
	}
	if err == nil {
		err = k.disk.SyncDir(k.dir)
	}
	if err != nil {
		k.Discard(r)
		return Ingested{}, storeError(err)
	}
	out := Ingested{Record: r, ReadNeeded: true}
	if r.Size <= InlineMax && text {
		out.Inline, out.ReadNeeded = head.String(), false
	}
	return out, nil
}

// write makes a file under a temporary name, syncs and renames it.
func (k *Keeper) write(name string, fill func(io.Writer) error) error {
	tmp := filepath.Join(k.dir, "."+name+".tmp")
	f, err := k.disk.Create(tmp, 0o600)
	if err != nil {
		return storeError(err)
	}
	err = fill(f)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = k.disk.Rename(tmp, filepath.Join(k.dir, name))
	}
	if err != nil {
		_ = k.disk.Remove(tmp)
		return storeError(err)
	}
	return nil
}

func storeError(err error) error {
	var known *thole.Error
	switch {
	case errors.As(err, &known), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return thole.Errorf(thole.CodeUnavailable, "store artifact: the disk is full: %w", err).WithHint("free space on the disk of the home directory and repeat the command; the job is unchanged")
	}
	return thole.Errorf(thole.CodeUnavailable, "store artifact: %w", err)
}

// contentType goes by the name where it is known, else by the bytes.
func contentType(name string, text bool) string {
	if t := mime.TypeByExtension(filepath.Ext(name)); t != "" {
		return t
	}
	if text {
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// prefix keeps the first n bytes of what is written.
type prefix struct {
	b *bytes.Buffer
	n int
}

func (p *prefix) Write(b []byte) (int, error) {
	if room := p.n - p.b.Len(); room > 0 {
		p.b.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// counter counts what is written.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// reader gives up between chunks when its caller does.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r *reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}

// Discard removes a copy that its job did not take.
func (k *Keeper) Discard(r Record) {
	_ = k.disk.Remove(filepath.Join(k.dir, r.Path))
	_ = k.disk.Remove(filepath.Join(k.dir, r.Manifest))
}

// Path is where an artifact's bytes are, for programs of the same user.
func (k *Keeper) Path(r Record) string { return filepath.Join(k.dir, r.Path) }

// ManifestPath is where the description of an artifact's bytes is.
func (k *Keeper) ManifestPath(r Record) string { return filepath.Join(k.dir, r.Manifest) }

// Verify reads the whole artifact and compares it with its record.
func (k *Keeper) Verify(r Record) error {
	f, err := k.open(r)
	if err != nil {
		return err
	}
	defer f.Close()
	hash := sha256.New()
	n, err := io.Copy(hash, f)
	if err != nil {
		return storeError(err)
	}
	if n != r.Size || hex.EncodeToString(hash.Sum(nil)) != r.SHA256 {
		return thole.Errorf(thole.CodeUnavailable, "artifact %s is damaged: %d bytes of %d, or another hash", r.ID, n, r.Size).
			WithHint("the result's summary is intact; restore %s from a backup or run the job again", k.Path(r))
	}
	return nil
}

func (k *Keeper) open(r Record) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(k.dir, r.Path), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if !r.RemovedAt.IsZero() {
			return nil, thole.Errorf(thole.CodeGone, "artifact %s was removed at %s, after its retention", r.ID, r.RemovedAt.Format(time.RFC3339))
		}
		return nil, thole.Errorf(thole.CodeUnavailable, "artifact %s is missing from the disk", r.ID).WithHint("restore %s from a backup", k.Path(r))
	}
	if err != nil {
		return nil, storeError(err)
	}
	return f, nil
}
