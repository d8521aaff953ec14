// Package lab starts the real parts that tests and benchmarks run on, each
// private to the run: own directory, port or socket. It touches no service of
// the machine and leaves nothing behind.
package lab

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Postgres returns the DSN of a fresh, empty database in a private cluster: its
// own directory and unix socket, no TCP port, never the system's cluster. One
// cluster serves a whole test binary; it ends with the binary, even when that is
// killed. Without PostgreSQL on the machine the test is skipped, and fails when
// CI=true.
func Postgres(t testing.TB) string {
	t.Helper()
	return newDatabase(t, "")
}

// PostgresLike is Postgres with a copy of a database that fill has filled once: a
// test binary has one such pattern.
func PostgresLike(t testing.TB, fill func(dsn string) error) string {
	t.Helper()
	needCluster(t)
	cluster.pattern.Do(func() {
		admin(t, "create database pattern")
		cluster.unfilled = fill(clusterDSN(cluster.dir, "pattern"))
	})
	if cluster.unfilled != nil {
		t.Fatalf("fill the pattern of databases: %v", cluster.unfilled)
	}
	return newDatabase(t, " template pattern")
}

func needCluster(t testing.TB) {
	t.Helper()
	cluster.once.Do(func() { cluster.err = startCluster() })
	Need(t, "PostgreSQL", cluster.err)
	use(t, "postgresql", cluster.version)
}

func newDatabase(t testing.TB, like string) string {
	t.Helper()
	needCluster(t)
	name := fmt.Sprintf("t%d", cluster.databases.Add(1))
	admin(t, "create database "+name+like)
	t.Cleanup(func() { admin(t, "drop database "+name+" with (force)") })
	return clusterDSN(cluster.dir, name)
}

var cluster struct {
	once      sync.Once
	pattern   sync.Once
	unfilled  error
	dir       string
	version   string
	err       error
	databases atomic.Int64
	alive     io.WriteCloser // never written; closes when this process ends
}

func clusterDSN(dir, database string) string {
	return "postgres:///" + database + "?" + url.Values{"host": {dir}, "user": {"thole"}}.Encode()
}

func admin(t testing.TB, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, clusterDSN(cluster.dir, "postgres"))
	if err != nil {
		t.Fatalf("connect to the private cluster: %v", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// startCluster makes and starts a cluster under the temporary directory. The
// server refuses to run as root, so root runs it as the user postgres.
func startCluster() error {
	bin, err := postgresBin()
	if err != nil {
		return err
	}
	if cluster.version, err = versionOf(filepath.Join(bin, "postgres"), "--version"); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "thole-pg-")
	if err != nil {
		return err
	}
	cluster.dir = dir
	cred, err := serverUser(dir)
	if err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "thole", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = dir, &syscall.SysProcAttr{Credential: cred}
	if out, err := initdb.CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	// No test can cut this server's power, so it need not sync; benchmarks must.
	fsync := "off"
	if os.Getenv("THOLE_BENCH") != "" {
		fsync = "on"
	}
	// The watcher reads our end of a pipe: when this process ends, in whatever
	// way, it stops the server and removes the directory.
	const watch = `"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c max_connections=200 -c fsync="$3" >"$2/log" 2>&1 &
pid=$!; cat >/dev/null; kill -QUIT $pid; wait $pid; rm -rf "$2"`
	watcher := exec.Command("/bin/sh", "-c", watch, "sh", bin, dir, fsync)
	watcher.Dir = dir
	watcher.SysProcAttr = &syscall.SysProcAttr{Credential: cred, Setpgid: true}
	if cluster.alive, err = watcher.StdinPipe(); err != nil {
		return err
	}
	if err := watcher.Start(); err != nil {
		return err
	}
	return waitForCluster(dir)
}

func waitForCluster(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, clusterDSN(dir, "postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			out, _ := os.ReadFile(filepath.Join(dir, "log"))
			return fmt.Errorf("the private cluster did not start: %w: %s", err, out)
		case <-tick.C:
		}
	}
}

// postgresBin finds the newest server: THOLE_PG_BIN, Debian's directories, PATH.
func postgresBin() (string, error) {
	if dir := os.Getenv("THOLE_PG_BIN"); dir != "" {
		return dir, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	slices.SortFunc(found, func(a, b string) int { return majorOf(b) - majorOf(a) })
	if len(found) > 0 {
		return filepath.Dir(found[0]), nil
	}
	path, err := exec.LookPath("postgres")
	if err != nil {
		return "", fmt.Errorf("no server found (apt-get install postgresql)")
	}
	return filepath.Dir(path), nil
}

func majorOf(path string) int {
	n, _ := strconv.Atoi(strings.Split(path, "/")[4])
	return n
}

// serverUser hands dir to the user that will run the server and returns its
// credential, nil when we are not root.
func serverUser(dir string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("root cannot run the server and there is no user postgres: %w", err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err1 != nil || err2 != nil {
		return nil, fmt.Errorf("user postgres has the odd ids %s:%s", u.Uid, u.Gid)
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
