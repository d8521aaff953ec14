package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const s3Version = "1.8.0"

// S3Domain is the name below which the server knows its buckets by host. No
// resolver knows it: dial the endpoint.
const S3Domain = "s3.test"

// S3Bucket is a fresh bucket on a private S3 server.
type S3Bucket struct {
	Endpoint  string // host:port, plain HTTP
	Region    string
	AccessKey string
	SecretKey string
	Bucket    string
}

var s3 struct {
	once    sync.Once
	err     error
	daemon  *daemon
	bucket  S3Bucket
	buckets atomic.Int64
}

// S3 returns a fresh bucket. One server serves a whole test binary.
func S3(t testing.TB) S3Bucket {
	t.Helper()
	s3.once.Do(func() { s3.err = startS3() })
	Need(t, "versitygw", s3.err)
	use(t, "versitygw", s3Version)
	b := s3.bucket
	b.Bucket = fmt.Sprintf("test-%d", s3.buckets.Add(1))
	client, err := b.Client()
	if err != nil {
		t.Fatalf("S3 client: %v", err)
	}
	if err := client.MakeBucket(t.Context(), b.Bucket, minio.MakeBucketOptions{Region: b.Region}); err != nil {
		t.Fatalf("make bucket: %v", err)
	}
	return b
}

// Client returns a client of the server.
func (b S3Bucket) Client() (*minio.Client, error) {
	return minio.New(b.Endpoint, &minio.Options{Creds: credentials.NewStaticV4(b.AccessKey, b.SecretKey, ""), Region: b.Region})
}

func startS3() error {
	bin, err := cached("versitygw-v"+s3Version+"/versitygw", "versitygw")
	if err != nil {
		return err
	}
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	s3.bucket = S3Bucket{Endpoint: addr, Region: "us-east-1", AccessKey: "lab-access", SecretKey: "lab-secret"}
	s3.daemon, err = launch("s3", func(dir string) ([]string, error) {
		data, versions := filepath.Join(dir, "data"), filepath.Join(dir, "versions")
		for _, d := range []string{data, versions} {
			if err := os.Mkdir(d, 0o700); err != nil {
				return nil, err
			}
		}
		return []string{
			bin, "--access", s3.bucket.AccessKey, "--secret", s3.bucket.SecretKey, "--port", addr,
			"--region", s3.bucket.Region, "--virtual-domain", S3Domain, "--quiet", "posix", "--versioning-dir", versions, data,
		}, nil
	}, func(string) error {
		client, err := s3.bucket.Client()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err = client.ListBuckets(ctx)
		return err
	})
	return err
}

// freeAddr names a loopback port that nobody uses now. Another process may take
// it before the server does; then the server's log says so.
func freeAddr() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}
