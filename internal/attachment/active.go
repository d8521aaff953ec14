package attachment

import "time"

// ActiveTurn is the running turn of a session as the stream of one epoch last showed it.
// Its needs are "true", "false" or, not known, "".
type ActiveTurn struct {
	Turn      string    `json:"active_turn_id"`
	Kind      string    `json:"active_turn_kind"`
	Approval  string    `json:"active_turn_requires_approval"`
	Network   string    `json:"active_turn_requires_network"`
	Write     string    `json:"active_turn_requires_write_access"`
	Risk      string    `json:"active_turn_risk_class"`
	Steerable bool      `json:"active_turn_steerable"`
	Epoch     int64     `json:"session_epoch"`
	At        time.Time `json:"seen_at"`
}

// Same reports whether two views say the same, apart from when.
func (t *ActiveTurn) Same(other *ActiveTurn) bool {
	if t == nil || other == nil {
		return t == other
	}
	a, b := *t, *other
	a.At, b.At = time.Time{}, time.Time{}
	return a == b
}
