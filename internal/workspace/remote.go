package workspace

import "context"

// Caller posts a JSON request to an executord and decodes the answer.
type Caller interface {
	Post(ctx context.Context, path string, in, out any) error
}

// Remote is the Side inside a running executor.
func Remote(c Caller) Side { return remote{c} }

type remote struct{ c Caller }

func (r remote) Restore(ctx context.Context, req RestoreRequest) (res RestoreResult, err error) {
	err = r.c.Post(ctx, "/workspace/restore", req, &res)
	return res, err
}

func (r remote) Link(ctx context.Context) error {
	return r.c.Post(ctx, "/workspace/link-agent-data", struct{}{}, nil)
}

func (r remote) Validate(ctx context.Context, req ValidateRequest) error {
	return r.c.Post(ctx, "/workspace/validate", req, nil)
}

func (r remote) Scan(ctx context.Context, req ScanRequest) (res ScanResult, err error) {
	err = r.c.Post(ctx, "/workspace/sync", req, &res)
	return res, err
}

func (r remote) Push(ctx context.Context, req PushRequest) (res PushResult, err error) {
	err = r.c.Post(ctx, "/workspace/sync/push", req, &res)
	return res, err
}

func (r remote) Claim(ctx context.Context, req ClaimRequest) (res ClaimResult, err error) {
	err = r.c.Post(ctx, "/workspace/claim", req, &res)
	return res, err
}

func (r remote) Compare(ctx context.Context, req CompareRequest) error {
	return r.c.Post(ctx, "/workspace/compare", req, nil)
}
