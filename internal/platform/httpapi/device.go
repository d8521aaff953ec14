package httpapi

import (
	"context"
	_ "embed" // the page on which a person lets a program in
	"net/http"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/session"
)

// deviceIn is a program that wants to be let in. It made its token itself.
type deviceIn struct {
	Name  string        `json:"name" doc:"what asks, and on which machine"`
	Scope session.Scope `json:"scope,omitempty" enum:"read,act,admin" doc:"act when absent"`
	Token string        `json:"token_sha256" doc:"SHA-256 of the API token that the program made, in hexadecimal"`
}

type deviceCode struct {
	Code      string `json:"user_code"`
	Page      string `json:"verification_uri_complete"`
	ExpiresIn int    `json:"expires_in"`
	Interval  int    `json:"interval" doc:"seconds between two looks"`
}

type deviceState struct {
	State session.DeviceState `json:"state" enum:"waiting,confirmed,gone"`
}

// deviceView is a program that waits, as the person sees it who decides.
type deviceView struct {
	Name      string        `json:"name"`
	Scope     session.Scope `json:"scope"`
	Address   string        `json:"address" doc:"that it asked from"`
	CreatedAt time.Time     `json:"created_at"`
	Fresh     bool          `json:"fresh" doc:"this login is new enough to confirm"`
}

// devicesPerSecond bounds how many programs ask and how many codes are tried.
const devicesPerSecond = 5

//go:embed device.html
var devicePage []byte

//go:embed device.js
var deviceScript []byte

func (s *Server) deviceRoutes() {
	s.serve("GET /auth/device", page{Route: Route{Public: "a person lets a program in here, after a login", HTML: true}, summary: "The page on which a person lets a program in", status: 200, media: "text/html", shapes: []any{""}}, static("text/html", devicePage))
	s.serve("GET /auth/device.js", page{Route: Route{Public: "the script of that page; it has no secret"}, summary: "The script of that page", status: 200, media: "text/javascript", shapes: []any{""}}, static("text/javascript", deviceScript))
	s.serve("POST /auth/device", page{Route: Route{Public: "who asks is let in by a person, or not at all"}, summary: "Ask that a person lets this program in", body: deviceIn{}, status: 200, media: "application/json", shapes: []any{deviceCode{}}}, s.askDevice)
	s.serve("POST /auth/device/state", page{Route: Route{Public: "only the program knows its token"}, summary: "Whether a person has let this program in", body: deviceIn{}, status: 200, media: "application/json", shapes: []any{deviceState{}}}, s.lookDevice)
	op(s, "GET", "/auth/devices/{code}", "Show the program that waits with a code", 200, func(ctx context.Context, in *struct {
		Code string `path:"code" maxLength:"40"`
	}) (*body[deviceView], error) {
		if err := s.slowDown(); err != nil {
			return nil, err
		}
		d, err := s.cfg.Sessions.Device(ctx, in.Code)
		return answer(deviceView{Name: d.Name, Scope: d.Scope, Address: d.Address, CreatedAt: d.Created, Fresh: callerOf(ctx).by.Fresh}, err)
	})
	op(s, "POST", "/auth/devices/{code}", "Let the program in that waits with a code, or refuse it", 204, func(ctx context.Context, in *struct {
		Code string `path:"code" maxLength:"40"`
		Body struct {
			Confirm bool `json:"confirm"`
		}
	}) (*empty, error) {
		if err := s.slowDown(); err != nil {
			return nil, err
		}
		w := callerOf(ctx)
		_, err := s.cfg.Sessions.EndDevice(ctx, w.actor.User, w.by, in.Code, in.Body.Confirm)
		return done(err)
	})
}

func (s *Server) slowDown() error {
	if s.devices.Allow() {
		return nil
	}
	return thole.Errorf(thole.CodeOverloaded, "too many logins of programs at a time").WithHint("try again in a moment")
}

func (s *Server) askDevice(w http.ResponseWriter, r *http.Request) {
	var in deviceIn
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	err := decodeBody(r, "a login", &in)
	if err == nil {
		err = s.slowDown()
	}
	var code string
	if err == nil {
		code, err = s.cfg.Sessions.AddDevice(r.Context(), session.Device{Token: in.Token, Name: in.Name, Scope: in.Scope, Address: s.address(r)})
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, deviceCode{Code: code, Page: "/auth/device#code=" + code, ExpiresIn: int(session.DeviceLife.Seconds()), Interval: 2})
}

func (s *Server) lookDevice(w http.ResponseWriter, r *http.Request) {
	var in deviceIn
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	err := decodeBody(r, "a login", &in)
	var state session.DeviceState
	if err == nil {
		state, err = s.cfg.Sessions.DeviceState(r.Context(), in.Token)
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, deviceState{state})
}
