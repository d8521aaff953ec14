package opencode

import (
	"context"
	"errors"
	"net/http"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// compact asks the server to shorten its context. It answers when that is done,
// which events report as they do for any turn; so only a refusal counts. stop ends
// the wait for the answer.
func (r *run) compact(ctx context.Context) (stop func(), err error) {
	model := r.model
	if model == nil { // the server wants one named: that of the newest answer
		var all []stored
		if err := r.srv.call(ctx, http.MethodGet, "/session/"+r.s.NativeID()+"/message", nil, &all); err != nil {
			return nil, err
		}
		for _, m := range all {
			if m.Info.Role == "assistant" {
				model = &modelRef{ProviderID: m.Info.ProviderID, ModelID: m.Info.ModelID}
			}
		}
	}
	if model == nil {
		return nil, thole.Errorf(thole.CodeInvalid, "opencode: there is nothing to compact")
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := r.srv.wait(ctx, http.MethodPost, "/session/"+r.s.NativeID()+"/summarize", model, nil)
		var refused *statusError
		if errors.As(err, &refused) {
			_ = r.Lock.Do(ctx, func() error {
				r.Lock.End(provider.Ended{Outcome: thole.OutcomeFailed, Error: provider.Failure(thole.ErrBadRequest, err.Error(), refused.status)})
				return nil
			})
		}
	}()
	return func() { cancel(); <-done }, nil
}
