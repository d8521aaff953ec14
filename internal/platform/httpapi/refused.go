package httpapi

import (
	"context"
	"errors"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/identity"
)

// denied records that a request was refused: one of a known user, and one with a
// false proof. Without any proof it is a page that asks for the login.
func (s *Server) denied(ctx context.Context, path string, err error) {
	switch thole.CodeOf(err) {
	case thole.CodeForbidden:
		if !audit.SourceOf(ctx).Actor.Valid() {
			return
		}
	case thole.CodeUnauthorized:
		if !showedProof(ctx) {
			return
		}
	default:
		if !errors.As(err, new(*identity.TooMany)) {
			return
		}
	}
	e := audit.Entry{Action: "http.request", Kind: "path", ID: path, Reason: err.Error()}
	if failed := (*identity.FailedLogin)(nil); errors.As(err, &failed) {
		e.Owner = failed.User
	}
	s.cfg.Audit.Refused(ctx, e)
}

// showedProof reports whether a request carried something that was to prove who sends it.
func showedProof(ctx context.Context) bool {
	shown, _ := ctx.Value(shownKey).(bool)
	return shown
}
