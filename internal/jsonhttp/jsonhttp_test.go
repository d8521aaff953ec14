package jsonhttp_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonhttp"
)

// An error comes over as it left, with its code's own status; what no code names is
// an internal one.
func TestErrorsComeOver(t *testing.T) {
	var fail error
	srv := httptest.NewServer(jsonhttp.Handle(64, func(context.Context, struct{ A int }) (int, error) { return 7, fail }))
	defer srv.Close()
	for want, c := range map[int]struct {
		err  error
		code thole.Code
	}{
		http.StatusBadRequest: {thole.Errorf(thole.CodeInvalid, "x"), thole.CodeInvalid}, http.StatusConflict: {thole.Errorf(thole.CodeBusy, "x").WithHint("h"), thole.CodeBusy},
		http.StatusNotImplemented: {thole.Errorf(thole.CodeUnsupported, "x"), thole.CodeUnsupported}, http.StatusInternalServerError: {errors.New("x"), thole.CodeInternal},
		http.StatusServiceUnavailable: {context.Canceled, thole.CodeUnavailable},
	} {
		fail = c.err
		resp, err := http.Post(srv.URL, "", strings.NewReader(`{"A":1}`))
		if err != nil {
			t.Fatal(err)
		}
		got := jsonhttp.ReadError(resp)
		resp.Body.Close()
		if resp.StatusCode != want || thole.CodeOf(got) != c.code || got.Error() != c.err.Error() || thole.HintOf(got) != thole.HintOf(c.err) {
			t.Errorf("%v came over as %d %v", c.err, resp.StatusCode, got)
		}
	}
}

func TestBodiesAreDecodedStrictly(t *testing.T) {
	srv := httptest.NewServer(jsonhttp.Handle(64, func(_ context.Context, in struct{ A int }) (int, error) { return in.A, nil }))
	defer srv.Close()
	for body, want := range map[string]int{
		`{"A":1}`: http.StatusOK, `{"B":1}`: http.StatusBadRequest, `{"A":1}{}`: http.StatusBadRequest, ``: http.StatusBadRequest, `{"A":` + strings.Repeat(" ", 64) + `1}`: http.StatusBadRequest,
	} {
		resp, err := http.Post(srv.URL, "", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d", body, resp.StatusCode)
		}
	}
}
