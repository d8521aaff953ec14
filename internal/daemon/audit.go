package daemon

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/authz"
)

// AuditMethods read, verify and sign the audit chain for who may read all of it. Who is at the
// home's socket is not asked to be let verify: that says of no link what is in it.
func AuditMethods(l *audit.Log, require func(context.Context, thole.Actor, authz.Action) error) map[string]Method {
	may := func(ctx context.Context, actor thole.Actor) error { return require(ctx, actor, authz.ReadAudit) }
	judges := func(ctx context.Context, actor thole.Actor) error {
		if actor == thole.LocalActor {
			return nil
		}
		return may(ctx, actor)
	}
	return map[string]Method{
		audit.MethodLatest: method(func(ctx context.Context, actor thole.Actor, f audit.Filter) ([]audit.Link, error) {
			if err := may(ctx, actor); err != nil {
				return nil, err
			}
			all, err := l.Latest(ctx, f)
			return append([]audit.Link{}, all...), err
		}),
		audit.MethodLinks: method(func(ctx context.Context, actor thole.Actor, p audit.LinksParams) ([]audit.Link, error) {
			if err := may(ctx, actor); err != nil {
				return nil, err
			}
			all, err := l.Links(ctx, p.After, p.Limit)
			return append([]audit.Link{}, all...), err
		}),
		audit.MethodHead: method(func(ctx context.Context, actor thole.Actor, _ struct{}) (audit.SignedHead, error) {
			if err := judges(ctx, actor); err != nil {
				return audit.SignedHead{}, err
			}
			return l.Head(ctx)
		}),
		audit.MethodVerify: method(func(ctx context.Context, actor thole.Actor, p audit.VerifyParams) (audit.Report, error) {
			if err := judges(ctx, actor); err != nil {
				return audit.Report{}, err
			}
			return l.Verify(ctx, p.Heads...)
		}),
	}
}
