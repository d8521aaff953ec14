// Package jsonhttp is JSON over HTTP as our servers speak it: one strict decoder,
// one form of errors and one table of what each error code is as an HTTP status.
// It knows no route and proves nobody.
package jsonhttp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
)

// Problem is the body of an error.
type Problem struct {
	Code    thole.Code `json:"code"`
	Message string     `json:"message"`
	Hint    string     `json:"hint,omitempty"`
}

var statuses = map[thole.Code]int{
	thole.CodeInvalid: http.StatusBadRequest, thole.CodeUnauthorized: http.StatusUnauthorized, thole.CodeForbidden: http.StatusForbidden,
	thole.CodeNotFound: http.StatusNotFound, thole.CodeConflict: http.StatusConflict, thole.CodeBusy: http.StatusConflict, thole.CodeHeld: http.StatusConflict,
	thole.CodeGone: http.StatusGone, thole.CodeOverloaded: http.StatusTooManyRequests, thole.CodeUnsupported: http.StatusNotImplemented,
	thole.CodeUnavailable: http.StatusServiceUnavailable, thole.CodeBudgetExceeded: http.StatusConflict,
}

// Status is what an error code is over HTTP. Whatever is not in the table is ours.
func Status(code thole.Code) int {
	if status, ok := statuses[code]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// Statuses are all that Status can say.
func Statuses() []int {
	return append(slices.Compact(slices.Sorted(maps.Values(statuses))), http.StatusInternalServerError)
}

// Handle decodes a JSON body of at most limit bytes strictly, calls fn and writes
// its result. An input with a ReadHeader method is given the headers too.
func Handle[In, Out any](limit int64, fn func(context.Context, In) (Out, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := strictjson.ReadKnown(http.MaxBytesReader(w, r.Body, limit), &in); err != nil {
			Error(w, thole.Errorf(thole.CodeInvalid, "decode request: %w", err))
			return
		}
		if to, ok := any(&in).(interface{ ReadHeader(http.Header) }); ok {
			to.ReadHeader(r.Header)
		}
		out, err := fn(r.Context(), in)
		if err != nil {
			Error(w, err)
			return
		}
		Write(w, http.StatusOK, out)
	})
}

// Write answers with a value.
func Write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// Error answers with an error. One that was given up because its asker went says
// nothing of whether it had an effect.
func Error(w http.ResponseWriter, err error) {
	code := thole.CodeOf(err)
	if errors.Is(err, context.Canceled) {
		code = thole.CodeUnavailable
	}
	Write(w, Status(code), Problem{Code: code, Message: err.Error(), Hint: thole.HintOf(err)})
}

// ReadError is the error that an answer carries.
func ReadError(resp *http.Response) error {
	var p Problem
	if err := strictjson.Read(io.LimitReader(resp.Body, 1<<20), &p); err != nil || p.Code == "" {
		return thole.Errorf(thole.CodeUnavailable, "executor answered %s", resp.Status)
	}
	return &thole.Error{Code: p.Code, Message: p.Message, Hint: p.Hint}
}
