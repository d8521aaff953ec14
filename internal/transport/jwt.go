package transport

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tholehq/thole/internal/strictjson"
)

var (
	errJWT         = errors.New("invalid websocket jwt")
	errJWTExpired  = errors.New("expired websocket jwt")
	errJWTEarly    = errors.New("websocket jwt is not valid yet")
	errJWTIssuer   = errors.New("websocket jwt issuer mismatch")
	errJWTAudience = errors.New("websocket jwt audience mismatch")
)

// jwtVerifier accepts HS256 only: the algorithm is ours to choose, never the
// token's.
type jwtVerifier struct {
	secret           []byte
	issuer, audience string
	skew             time.Duration
	now              func() time.Time
}

type jwtClaims struct {
	Exp *float64        `json:"exp"`
	Nbf *float64        `json:"nbf"`
	Iss *string         `json:"iss"`
	Aud json.RawMessage `json:"aud"`
}

func (v *jwtVerifier) verify(token string) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return errJWT
	}
	var header struct {
		Alg  string          `json:"alg"`
		Crit json.RawMessage `json:"crit"`
	}
	if !decodePart(parts[0], &header) || header.Alg != "HS256" || header.Crit != nil {
		return errJWT
	}
	sig, err := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err != nil {
		return errJWT
	}
	mac := hmac.New(sha256.New, v.secret)
	mac.Write([]byte(parts[0] + "." + parts[1]))
	if !hmac.Equal(sig, mac.Sum(nil)) {
		return errJWT
	}
	var c jwtClaims
	if !decodePart(parts[1], &c) || c.Exp == nil {
		return errJWT
	}
	return v.check(&c)
}

func (v *jwtVerifier) check(c *jwtClaims) error {
	now, skew := float64(v.now().UnixMilli())/1000, v.skew.Seconds()
	switch {
	case math.IsInf(*c.Exp, 0) || now > *c.Exp+skew:
		return errJWTExpired
	case c.Nbf != nil && now < *c.Nbf-skew:
		return errJWTEarly
	case v.issuer != "" && (c.Iss == nil || *c.Iss != v.issuer):
		return errJWTIssuer
	case v.audience != "" && !slices.Contains(audiences(c.Aud), v.audience):
		return errJWTAudience
	}
	return nil
}

// audiences reads the two legal forms of aud; any other form names nobody.
func audiences(raw json.RawMessage) []string {
	var one string
	if strictjson.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	var many []string
	if strictjson.Unmarshal(raw, &many) != nil {
		return nil
	}
	return many
}

func decodePart(part string, v any) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(part)
	return err == nil && strictjson.Unmarshal(raw, v) == nil
}
