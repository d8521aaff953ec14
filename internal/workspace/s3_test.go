package workspace_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tholehq/thole/internal/objects/s3"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/workspace/manager"
)

// The same through a real S3 server: packs, a file in parts, restore, verify.
func TestOnS3(t *testing.T) {
	b := lab.S3(t)
	objs, err := s3.Open(s3.Config{Endpoint: "http://" + b.Endpoint, Region: b.Region, Bucket: b.Bucket, Keys: s3.Keys{Access: b.AccessKey, Secret: b.SecretKey}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { objs.Close() })
	r := newRig(t, func(c *manager.Config) { c.Objects = objs })
	thread := newThread()
	first := r.box(thread)
	r.restore(first)
	oddTree(t, first)
	large := make([]byte, 65<<20)
	for i := range large {
		large[i] = byte(i >> 12)
	}
	first.put(t, "parts.bin", string(large))
	snap := r.sync(first)
	second := r.box(thread)
	r.restore(second)
	if diff := cmp.Diff(listing(t, first.dir), listing(t, second.dir)); diff != "" {
		t.Fatal(diff)
	}
	if err := r.manager.Verify(context.Background(), second.stopped(), snap); err != nil {
		t.Fatal(err)
	}
	if again := r.sync(second); again != snap {
		t.Fatalf("an unchanged tree made snapshot %s after %s", again, snap)
	}
}
