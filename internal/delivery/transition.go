package delivery

import (
	thole "github.com/tholehq/thole"
)

// Move is a named transition of an attempt.
type Move string

const (
	MoveBeginAccept Move = "begin_accept"
	MoveAccept      Move = "accept"
	MoveReject      Move = "reject"
	MoveBeginArm    Move = "begin_arm"
	MoveArm         Move = "arm"
	MoveClose       Move = "close"
	MoveAbandon     Move = "abandon"
	MoveSupersede   Move = "supersede"
)

// Moves is every transition, in the order documents name them.
var Moves = []Move{MoveBeginAccept, MoveAccept, MoveReject, MoveBeginArm, MoveArm, MoveClose, MoveAbandon, MoveSupersede}

// Next is the whole attempt machine: the state after m, or false if m is not legal
// in from. The CHECK constraints and triggers of the store know the same states.
func Next(from thole.AttemptState, m Move) (thole.AttemptState, bool) {
	//exhaustive:enforce
	switch from {
	case thole.AttemptPrepared:
		switch m {
		case MoveBeginAccept:
			return thole.AttemptAcceptPending, true
		case MoveBeginArm:
			return thole.AttemptArmPending, true
		}
	case thole.AttemptAcceptPending:
		switch m {
		case MoveAccept:
			return thole.AttemptCooldown, true
		case MoveReject:
			return thole.AttemptPrepared, true
		}
	case thole.AttemptArmPending:
		if m == MoveArm {
			return thole.AttemptCooldown, true
		}
	case thole.AttemptCooldown:
		if m == MoveClose {
			return thole.AttemptClosed, true
		}
	case thole.AttemptClosed, thole.AttemptSuperseded, thole.AttemptAbandoned: // over
	}
	if from.Open() {
		switch m {
		case MoveAbandon:
			return thole.AttemptAbandoned, true
		case MoveSupersede:
			return thole.AttemptSuperseded, true
		}
	}
	return from, false
}

// ending is the legal way to end an open attempt whose batch will not be sent
// again: what reached the channel is closed, what did not is abandoned.
func ending(s thole.AttemptState) Move {
	if s == thole.AttemptCooldown {
		return MoveClose
	}
	return MoveAbandon
}
