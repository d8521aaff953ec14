package s3

import (
	"context"
	"io"

	"github.com/minio/minio-go/v7"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
)

// maxPut is the most that servers take in one request.
const maxPut = 5 << 30

// plain sends the payload as it is: what must not change names its checksum in
// a signed header, and not every server reads the chunked form.
var plain = minio.PutObjectOptions{DisableContentSha256: true, DisableMultipart: true}

// Put implements objects.Store.
func (s *Store) Put(ctx context.Context, key string, body io.Reader, size int64) error {
	if err := objects.CheckKey(key); err != nil {
		return err
	}
	if size > maxPut {
		return thole.Errorf(thole.CodeInvalid, "object of %d bytes is too large to store in one piece", size)
	}
	exact := &exactReader{r: body, left: size}
	var source io.Reader = exact
	if seeker, ok := body.(io.ReadSeeker); ok {
		source = &rewinder{exact, seeker, size}
	}
	_, err := s.core.PutObject(ctx, s.bucket, key, source, size, "", "", plain)
	if exact.wrong {
		return thole.Errorf(thole.CodeInvalid, "object does not have the %d bytes announced", size)
	}
	if err != nil {
		return failed("store object", key, err)
	}
	// One more byte than announced would be silently left out.
	if n, _ := io.ReadFull(body, make([]byte, 1)); n > 0 {
		_ = s.Delete(context.WithoutCancel(ctx), key)
		return thole.Errorf(thole.CodeInvalid, "object has more than the %d bytes announced", size)
	}
	return nil
}

// rewinder lets a body be sent again from its beginning.
type rewinder struct {
	*exactReader
	s    io.ReadSeeker
	size int64
}

func (r *rewinder) Seek(off int64, whence int) (int64, error) {
	r.left, r.wrong = r.size-off, false
	return r.s.Seek(off, whence)
}

// exactReader notices a body that ends early.
type exactReader struct {
	r     io.Reader
	left  int64
	wrong bool
}

func (e *exactReader) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > e.left {
		p = p[:e.left]
	}
	n, err := e.r.Read(p)
	e.left -= int64(n)
	if err == io.EOF && e.left > 0 {
		e.wrong = true
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}
