// Package budget decides what may be used. A budget limits the money or the tokens of one
// user, project, app or thread in a day, a month or in all, or of each turn. The ledger
// reserves the most that a model call may use before it is sent and settles what it did
// use, once, afterwards; so nothing goes beyond a budget that interrupts, however many
// turns run at a time.
//
// Ledger is for the gateway, Service for people and for the start of turns. Rules are
// methods of Budget without time or rows of their own; Store applies them in one
// transaction. The package knows no wire and no model service.
package budget

import (
	"cmp"
	"fmt"
	"time"

	thole "github.com/tholehq/thole"
)

// ID names a budget.
type ID string

// NotFound is the answer for a budget that is not there, and for one that is not theirs to see who ask.
func NotFound(id ID) error {
	return thole.Errorf(thole.CodeNotFound, "there is no budget %s", id).WithHint("thole budget list shows them")
}

// Scope is whose use a budget limits.
type Scope string

const (
	ScopeUser    Scope = "user"
	ScopeProject Scope = "project"
	ScopeApp     Scope = "app"
	ScopeThread  Scope = "thread"
	ScopeTurn    Scope = "turn"
)

// Scopes are all of them.
var Scopes = []Scope{ScopeUser, ScopeProject, ScopeApp, ScopeThread, ScopeTurn}

// Period is how long a limit counts, in UTC.
type Period string

const (
	PeriodDay   Period = "day"
	PeriodMonth Period = "month"
	PeriodTotal Period = "total"
)

// Action is what happens at the limit.
//
//	warn       the thread gets a notice; nothing is refused
//	block_new  no new turn starts; turns that run go on to their end
//	interrupt  model calls are refused and the turn that made one ends
type Action string

const (
	ActionWarn      Action = "warn"
	ActionBlockNew  Action = "block_new"
	ActionInterrupt Action = "interrupt"
)

// Budget is one limit. Zero limits do not limit; one of them is set.
type Budget struct {
	ID      ID     `json:"id"`
	Scope   Scope  `json:"scope"`
	Subject string `json:"subject,omitempty"` // "": each one of the scope by itself
	Period  Period `json:"period"`
	Micros  int64  `json:"limit_micros,omitempty"`
	Tokens  int64  `json:"limit_tokens,omitempty"`
	// Soft is the percentage of the limit at which the thread gets a notice; 0: none.
	Soft    int64        `json:"soft_pct"`
	Action  Action       `json:"action"`
	Version int64        `json:"version"`
	By      thole.UserID `json:"created_by"`
	Created time.Time    `json:"created_at"`
	Updated time.Time    `json:"updated_at"`
}

// MaxLimit bounds limits and amounts, so that sums of them cannot overflow.
const MaxLimit = 1 << 50

// Check returns what is wrong with a budget as it was asked for.
func (b Budget) Check() error {
	bad := func(hint, format string, args ...any) error {
		return thole.Errorf(thole.CodeInvalid, format, args...).WithHint("%s", hint)
	}
	switch b.Scope {
	case ScopeUser, ScopeProject, ScopeApp, ScopeThread, ScopeTurn:
	case "department":
		return bad("limit the users or the project of the department", "there are no departments yet, so a budget cannot be for one")
	default:
		return bad("the scopes are user, project, app, thread and turn", "unknown scope %q", b.Scope)
	}
	switch b.Period {
	case PeriodDay, PeriodMonth, PeriodTotal:
	default:
		return bad("the periods are day, month and total", "unknown period %q", b.Period)
	}
	switch b.Action {
	case ActionWarn, ActionBlockNew, ActionInterrupt:
	default:
		return bad("the actions are warn, block_new and interrupt", "unknown action %q", b.Action)
	}
	switch {
	case b.Scope == ScopeTurn && (b.Subject != "" || b.Period != PeriodTotal || b.Action == ActionBlockNew):
		return bad("leave the id out, take the period total, and warn or interrupt", "a budget of turns limits each turn by itself")
	case len(b.Subject) > 200:
		return bad("use the id of what it limits", "the id is too long")
	case b.Micros < 0 || b.Tokens < 0 || b.Micros > MaxLimit || b.Tokens > MaxLimit:
		return bad("limits are positive", "the limit is out of range")
	case b.Micros == 0 && b.Tokens == 0:
		return bad("give an amount such as '$20', a number such as '2M tokens', or both", "a budget needs a limit")
	case b.Soft < 0 || b.Soft > 100:
		return bad("it is a percentage of the limit; 0 means no notice", "the soft limit must be from 0 to 100")
	}
	return nil
}

// SubjectOf is the id under which a budget counts a place, "" when it does not apply.
func (b Budget) SubjectOf(p Place) string {
	id := map[Scope]string{
		ScopeUser: string(p.Owner.User), ScopeProject: string(p.Owner.Project), ScopeApp: string(p.Owner.App),
		ScopeThread: string(cmp.Or(p.Family, p.Thread)), ScopeTurn: string(p.Turn),
	}[b.Scope]
	if b.Subject != "" && b.Subject != id {
		return ""
	}
	return id
}

// Place is where something is used. A turn that has not started has no id yet.
type Place struct {
	Owner  thole.Owner
	Thread thole.ThreadID
	Turn   thole.TurnID
	// Family is the thread in whose budget it counts, "" for Thread: a thread that an
	// agent started uses the budget of that agent's. The store knows it.
	Family thole.ThreadID
}

// Bounds are the first moment of the period of a time and of the next one; the zero
// times of a period without an end.
func (p Period) Bounds(at time.Time) (start, next time.Time) {
	y, m, d := at.UTC().Date()
	switch p {
	case PeriodDay:
		start = time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
		return start, start.AddDate(0, 0, 1)
	case PeriodMonth:
		start = time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
		return start, start.AddDate(0, 1, 0)
	case PeriodTotal:
	}
	return time.Time{}, time.Time{}
}

// Amount is something used, or the most that something may use.
type Amount struct {
	Micros int64 `json:"micros"`
	Tokens int64 `json:"tokens"`
}

// State is what a subject has used of a budget in one period.
type State struct {
	Subject  string    `json:"subject"`
	Start    time.Time `json:"period_start,omitzero"`
	Spent    Amount    `json:"spent"`
	Reserved Amount    `json:"reserved"`
	// Unpriced counts charges without a price: they count tokens only.
	Unpriced int64 `json:"unpriced"`
	Notified Level `json:"notified"`
}

// Level is how far a budget is used.
type Level int64

const (
	LevelOK    Level = 0
	LevelSoft  Level = 1
	LevelSpent Level = 2
)

// Level returns how far the budget is used. Reservations do not count: most of them are
// given back.
func (b Budget) Level(s State) Level {
	reached := func(pct int64) bool {
		return b.Micros > 0 && s.Spent.Micros >= part(b.Micros, pct) || b.Tokens > 0 && s.Spent.Tokens >= part(b.Tokens, pct)
	}
	switch {
	case reached(100):
		return LevelSpent
	case b.Soft > 0 && reached(b.Soft):
		return LevelSoft
	}
	return LevelOK
}

func part(limit, pct int64) int64 { return limit/100*pct + limit%100*pct/100 }

// Fits reports whether a call that may use a may be sent. Only a budget that interrupts
// refuses calls.
func (b Budget) Fits(s State, a Amount) bool {
	if b.Action != ActionInterrupt {
		return true
	}
	if b.unpriced(a) {
		return false
	}
	return (b.Micros == 0 || s.Spent.Micros+s.Reserved.Micros+max(a.Micros, 0) <= b.Micros) &&
		(b.Tokens == 0 || s.Spent.Tokens+s.Reserved.Tokens+a.Tokens <= b.Tokens)
}

// unpriced reports whether an amount has no price, and nothing but money is limited: an
// agent that may choose its model would choose one that costs nothing here.
func (b Budget) unpriced(a Amount) bool { return a.Micros < 0 && b.Micros > 0 && b.Tokens == 0 }

// Admits reports whether a new turn may start.
func (b Budget) Admits(s State) bool { return b.Action == ActionWarn || b.Level(s) < LevelSpent }

// Refusal is why a budget refused a call or a turn.
type Refusal struct {
	Budget   Budget    `json:"budget"`
	Spent    Amount    `json:"spent"`
	Reserved Amount    `json:"reserved"`
	Asked    Amount    `json:"asked"`
	Resets   time.Time `json:"resets_at,omitzero"`
}

// Refuse describes a refusal at a time.
func (b Budget) Refuse(s State, asked Amount, at time.Time) Refusal {
	_, next := b.Period.Bounds(at)
	return Refusal{Budget: b, Spent: s.Spent, Reserved: s.Reserved, Asked: asked, Resets: next}
}

// Error is the refusal as everybody reads it: the gateway's answer, the turn's end, the
// problem of a request.
func (r Refusal) Error() *thole.Error {
	text := fmt.Sprintf("the budget of this %s is spent: %s of %s%s", r.Budget.Scope, r.figure(r.Spent), r.Budget.Limit(), r.Budget.per())
	hint := fmt.Sprintf("raise it with thole budget set (thole budget show %s)", r.Budget.ID)
	switch {
	case !r.Budget.Admits(State{Spent: r.Spent}):
	case r.Budget.unpriced(r.Asked):
		return thole.Errorf(thole.CodeBudgetExceeded, "the model has no price, and the budget of this %s limits money alone", r.Budget.Scope).
			WithHint("give the model a price (thole usage prices), or limit tokens too: thole budget set (thole budget show %s)", r.Budget.ID)
	default:
		text = fmt.Sprintf("the budget of this %s has too little left for the next model call: %s of %s%s spent, %s reserved by calls that run, up to %s needed",
			r.Budget.Scope, r.figure(r.Spent), r.Budget.Limit(), r.Budget.per(), r.figure(r.Reserved), r.figure(r.Asked))
	}
	if !r.Resets.IsZero() {
		text += "; it starts again at " + r.Resets.UTC().Format(time.RFC3339)
	}
	if !r.Resets.IsZero() {
		hint += ", or wait until then"
	}
	return thole.Errorf(thole.CodeBudgetExceeded, "%s", text).WithHint("%s", hint)
}

// figure writes the parts of an amount that the budget limits.
func (r Refusal) figure(a Amount) string { return r.Budget.Figure(a) }

// Figure writes the parts of an amount that the budget limits.
func (b Budget) Figure(a Amount) string {
	switch {
	case b.Micros > 0 && b.Tokens > 0:
		return Money(a.Micros) + " and " + Count(a.Tokens)
	case b.Micros > 0:
		return Money(a.Micros)
	}
	return Count(a.Tokens)
}

// Limit writes the limit.
func (b Budget) Limit() string { return b.Figure(Amount{b.Micros, b.Tokens}) }

func (b Budget) per() string {
	if b.Period == PeriodTotal {
		return ""
	}
	return " a " + string(b.Period)
}

// Notice is the text for a thread whose budget reached a level.
func (b Budget) Notice(s State, l Level, at time.Time) string {
	text := fmt.Sprintf("%s of the budget of this %s is used: %s of %s%s", percent(b, s), b.Scope, b.Figure(s.Spent), b.Limit(), b.per())
	if _, next := b.Period.Bounds(at); !next.IsZero() {
		text += "; it starts again at " + next.Format(time.RFC3339)
	}
	if l == LevelSpent {
		text += map[Action]string{
			ActionWarn: ". Nothing is refused.", ActionBlockNew: ". No new turn starts until then.", ActionInterrupt: ". Model calls are refused until then.",
		}[b.Action]
	}
	return text
}

func percent(b Budget, s State) string { return fmt.Sprintf("%.0f %%", 100*b.Share(s)) }

// Share is how much of the limit is spent, of the nearer one where there are two.
func (b Budget) Share(s State) (share float64) {
	if b.Micros > 0 {
		share = float64(s.Spent.Micros) / float64(b.Micros)
	}
	if b.Tokens > 0 {
		share = max(share, float64(s.Spent.Tokens)/float64(b.Tokens))
	}
	return share
}
