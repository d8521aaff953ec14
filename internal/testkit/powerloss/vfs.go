package powerloss

import (
	"bytes"
	"path/filepath"
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// The VFS is the driver's own with two methods replaced: open, which gives every
// file a copy of its method table in which write, truncate, sync and close record
// first, and delete. Shared memory and locks stay as they are: they do not
// survive a power cut.

const vfsName = "thole-powerloss"

var vfs struct {
	once sync.Once
	base uintptr // the default VFS

	mu    sync.Mutex // guards what follows
	files map[uintptr]vfsFile
	// patched maps an original method table to our copy, and back.
	patched, original map[uintptr]uintptr
}

type vfsFile struct {
	disk *Disk
	path string
	// named: the driver's next sync also syncs the directory, as it does once for
	// each journal or log that it opens with the right to create it.
	named bool
}

func registerVFS() string {
	vfs.once.Do(func() {
		tls := libc.NewTLS()
		defer tls.Close()
		vfs.files, vfs.patched, vfs.original = map[uintptr]vfsFile{}, map[uintptr]uintptr{}, map[uintptr]uintptr{}
		sqlite3.Xsqlite3_initialize(tls)
		vfs.base = sqlite3.Xsqlite3_vfs_find(tls, 0)
		own := copyOf[sqlite3.Tsqlite3_vfs](tls, vfs.base)
		v := at[sqlite3.Tsqlite3_vfs](own)
		name, err := libc.CString(vfsName)
		if err != nil {
			panic(err)
		}
		v.FzName, v.FpNext = name, 0
		v.FxOpen = pointer(vfsOpen)
		v.FxDelete = pointer(vfsDelete)
		if rc := sqlite3.Xsqlite3_vfs_register(tls, own, 0); rc != sqlite3.SQLITE_OK {
			panic("the power-loss VFS cannot be registered")
		}
	})
	return vfsName
}

type (
	openFunc     func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	deleteFunc   func(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32
	writeFunc    func(tls *libc.TLS, file, data uintptr, n int32, off int64) int32
	truncateFunc func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc     func(tls *libc.TLS, file uintptr, flags int32) int32
	closeFunc    func(tls *libc.TLS, file uintptr) int32
)

func vfsOpen(tls *libc.TLS, _, name, file uintptr, flags int32, out uintptr) int32 {
	base := at[sqlite3.Tsqlite3_vfs](vfs.base)
	rc := function[openFunc](base.FxOpen)(tls, vfs.base, name, file, flags, out)
	if rc != sqlite3.SQLITE_OK || name == 0 {
		return rc
	}
	disk, path := diskOf(libc.GoString(name))
	if disk == nil {
		return rc
	}
	vfs.mu.Lock()
	defer vfs.mu.Unlock()
	const journals = sqlite3.SQLITE_OPEN_MAIN_JOURNAL | sqlite3.SQLITE_OPEN_SUPER_JOURNAL | sqlite3.SQLITE_OPEN_WAL
	vfs.files[file] = vfsFile{disk, path, flags&journals != 0 && flags&sqlite3.SQLITE_OPEN_CREATE != 0}
	table := at[uintptr](file) // a file begins with its method table
	own, ok := vfs.patched[*table]
	if !ok {
		own = copyOf[sqlite3.Tsqlite3_io_methods](tls, *table)
		m := at[sqlite3.Tsqlite3_io_methods](own)
		m.FxWrite, m.FxTruncate = pointer(vfsWrite), pointer(vfsTruncate)
		m.FxSync, m.FxClose = pointer(vfsSync), pointer(vfsClose)
		vfs.patched[*table], vfs.original[own] = own, *table
	}
	*table = own
	disk.add(op{kind: opCreate, path: path})
	return rc
}

func vfsDelete(tls *libc.TLS, _, name uintptr, syncDir int32) int32 {
	base := at[sqlite3.Tsqlite3_vfs](vfs.base)
	rc := function[deleteFunc](base.FxDelete)(tls, vfs.base, name, syncDir)
	if disk, path := diskOf(libc.GoString(name)); disk != nil && rc == sqlite3.SQLITE_OK {
		disk.add(op{kind: opRemove, path: path})
		if syncDir != 0 {
			disk.add(op{kind: opSyncDir, path: filepath.Dir(path)})
		}
	}
	return rc
}

// known returns what is open at file and the methods the driver gave it.
func known(file uintptr) (vfsFile, *sqlite3.Tsqlite3_io_methods) {
	vfs.mu.Lock()
	defer vfs.mu.Unlock()
	return vfs.files[file], at[sqlite3.Tsqlite3_io_methods](vfs.original[*at[uintptr](file)])
}

func vfsWrite(tls *libc.TLS, file, data uintptr, n int32, off int64) int32 {
	f, m := known(file)
	if f.disk.full.Load() {
		return sqlite3.SQLITE_FULL
	}
	f.disk.add(op{kind: opWrite, path: f.path, off: off, data: bytes.Clone(unsafe.Slice(at[byte](data), n))})
	return function[writeFunc](m.FxWrite)(tls, file, data, n, off)
}

func vfsTruncate(tls *libc.TLS, file uintptr, size int64) int32 {
	f, m := known(file)
	f.disk.add(op{kind: opTruncate, path: f.path, off: size})
	return function[truncateFunc](m.FxTruncate)(tls, file, size)
}

func vfsSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	f, m := known(file)
	rc := function[syncFunc](m.FxSync)(tls, file, flags)
	if f.disk.broken.Load() {
		return sqlite3.SQLITE_IOERR_FSYNC
	}
	if rc == sqlite3.SQLITE_OK {
		f.disk.add(op{kind: opSync, path: f.path})
		if f.named {
			f.disk.add(op{kind: opSyncDir, path: filepath.Dir(f.path)})
			f.named = false
			vfs.mu.Lock()
			vfs.files[file] = f
			vfs.mu.Unlock()
		}
	}
	return rc
}

func vfsClose(tls *libc.TLS, file uintptr) int32 {
	_, m := known(file)
	vfs.mu.Lock()
	delete(vfs.files, file)
	vfs.mu.Unlock()
	return function[closeFunc](m.FxClose)(tls, file)
}

// at reads an address of the driver's own memory, which Go does not manage.
func at[T any](addr uintptr) *T { return *(**T)(unsafe.Pointer(&addr)) }

// pointer and function convert between a Go function and the form in which the
// driver stores functions.
func pointer[F any](f F) uintptr            { return *(*uintptr)(unsafe.Pointer(&f)) }
func function[F any](addr uintptr) (call F) { return *(*F)(unsafe.Pointer(&addr)) }

func copyOf[T any](tls *libc.TLS, addr uintptr) uintptr {
	own := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(*at[T](addr))))
	*at[T](own) = *at[T](addr)
	return own
}
