package httpapi

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"time"

	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/vault"
)

// Tickets keeps tickets that any server takes, not only the one that made them.
type Tickets interface {
	Add(ctx context.Context, hash, sealed string, life time.Duration, limit int) error
	// Use removes a ticket; "": there is none.
	Use(ctx context.Context, hash string) (sealed string, err error)
}

// sharedTicket is what a ticket stands in for. It is stored sealed with the ticket itself,
// of which only a sum is stored.
type sharedTicket struct {
	Target string          `json:"target"`
	Login  session.Secrets `json:"login"`
	Token  string          `json:"token"`
}

const nonceBytes = 12

func ticketSums(value string) (hash string, key []byte) {
	sum := sha256.Sum256([]byte("ticket " + value))
	sealing := sha256.Sum256([]byte("seal " + value))
	return hex.EncodeToString(sum[:]), sealing[:]
}

func (s *Server) addTicket(ctx context.Context, path string, caller who) (string, error) {
	if s.cfg.Tickets == nil {
		return s.tickets.add(ticket{path, caller, s.cfg.Now().Add(ticketLife)}, s.cfg.Now())
	}
	plain, err := json.Marshal(sharedTicket{Target: path, Login: caller.login, Token: caller.token})
	if err != nil {
		return "", err
	}
	value := rand.Text() + rand.Text()
	hash, key := ticketSums(value)
	sealed, err := vault.Seal(key, plain, hash)
	if err != nil {
		return "", err
	}
	return value, s.cfg.Tickets.Add(ctx, hash, base64.StdEncoding.EncodeToString(append(sealed.Nonce, sealed.Text...)), ticketLife, maxTickets)
}

// useTicket removes a ticket and finds out who made it, if that is still logged in.
func (s *Server) useTicket(value string, r *http.Request, cookie string) (who, error) {
	if s.cfg.Tickets == nil {
		w, err := s.tickets.use(value, r, cookie, s.cfg.Now())
		if err == nil && !s.known(r, w) {
			err = errTicket()
		}
		return w, err
	}
	hash, key := ticketSums(value)
	text, err := s.cfg.Tickets.Use(r.Context(), hash)
	if err != nil {
		return who{}, err
	}
	sealed, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(sealed) < nonceBytes {
		return who{}, errTicket()
	}
	var t sharedTicket
	plain, err := vault.Unseal(key, vault.Sealed{Nonce: sealed[:nonceBytes], Text: sealed[nonceBytes:]}, hash)
	if err != nil || strictjson.Unmarshal(plain, &t) != nil || r.Method != http.MethodGet || t.Target != target(r.URL) || t.Login.Cookie != "" && t.Login.Cookie != cookie {
		return who{}, errTicket()
	}
	if t.Token != "" {
		return s.bearer(r, t.Token)
	}
	return s.browser(r, t.Login)
}
