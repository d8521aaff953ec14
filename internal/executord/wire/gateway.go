package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// Gateway is the first word of a connection to the model gateway, on a line with the
// proof of the executor that it comes from.
const Gateway = "THOLE-GATEWAY "

// GatewayProof is what an executor proves itself by to the gateway. It comes from the
// bearer token of this start, which nothing in its box knows, so that owner and
// executord agree on it whenever one of them was killed; the token does not follow from it.
func GatewayProof(token string) string { return derive(token, "gateway proof") }

// GatewayToken is what an agent of a provider in this executor shows to the gateway.
// Without the proof it is worth nothing.
func GatewayToken(token, thread, provider string) string {
	return "tgw_" + derive(token, "gateway token", thread, provider)
}

// derive is a key of its own for each purpose. The words hold no zero byte.
func derive(token string, words ...string) string {
	mac := hmac.New(sha256.New, []byte(token))
	for _, w := range words {
		mac.Write(append([]byte(w), 0))
	}
	return hex.EncodeToString(mac.Sum(nil))
}
