// Package audit owns the chain of what people and programs did and were refused: who,
// through what, from where, on whose behalf, before and after, the decision and its reason.
// Each link has the sum of the one before it, so that a changed, removed or inserted one is
// found; signed heads, kept outside of the store, find a chain whose end was cut off.
//
// Links are written in the transaction of what they are about, by the store. The package
// decides nothing and never changes a link.
package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"strconv"
	"time"

	thole "github.com/tholehq/thole"
)

// Outcome is how what was tried ended.
type Outcome string

// The outcomes.
const (
	Allowed Outcome = "allowed"
	Denied  Outcome = "denied"
	Failed  Outcome = "failed"
)

// Source is who acts, and where they come from.
type Source struct {
	Actor   thole.Actor
	Login   string // id of the login or API token that proved the actor
	Address string // of the connection, "" for a socket of this machine
}

type sourceKey struct{}

// With returns a context in which what is recorded names that source. The edge that proved
// the actor calls it.
func With(ctx context.Context, s Source) context.Context {
	return context.WithValue(ctx, sourceKey{}, s)
}

// SourceOf returns the source of a context; zero: nobody is known.
func SourceOf(ctx context.Context) Source {
	s, _ := ctx.Value(sourceKey{}).(Source)
	return s
}

// SourceFor names the actor that a machine was given, with where the context says they come
// from. When another one acts, the address is not theirs.
func SourceFor(ctx context.Context, a thole.Actor) Source {
	s := SourceOf(ctx)
	if s.Actor.User != a.User || s.Actor.Via != a.Via {
		s = Source{}
	}
	s.Actor = a
	return s
}

// Entry is one fact, without its place in the chain. Nothing of it is a secret.
type Entry struct {
	At       time.Time       `json:"at"`
	Actor    string          `json:"actor" doc:"id of a user; system and agent are programs"`
	Via      string          `json:"via,omitempty"`
	Login    string          `json:"login,omitempty" doc:"id of the login or API token"`
	Address  string          `json:"address,omitempty"`
	Client   string          `json:"client,omitempty"`
	OnBehalf thole.UserID    `json:"on_behalf,omitempty"`
	Action   string          `json:"action"`
	Kind     string          `json:"resource_kind,omitempty"`
	ID       string          `json:"resource_id,omitempty"`
	App      thole.AppID     `json:"app,omitempty"`
	Project  thole.ProjectID `json:"project,omitempty"`
	Owner    thole.UserID    `json:"owner,omitempty"`
	Outcome  Outcome         `json:"outcome"`
	Reason   string          `json:"reason,omitempty"`
	Before   string          `json:"before,omitempty"`
	After    string          `json:"after,omitempty"`
}

// From fills in who acted: a program that acts for a user is the program, on the user's behalf.
func (e Entry) From(s Source) Entry {
	a := s.Actor
	e.Actor, e.Via, e.Client, e.Login, e.Address = a.Who(), a.Via, a.Client, s.Login, s.Address
	if e.OnBehalf == "" && !a.Person() {
		e.OnBehalf = a.User
	}
	return e
}

// Complete fills in what an entry leaves out: the source of the context, the outcome.
func (e Entry) Complete(ctx context.Context) Entry {
	if e.Actor == "" && e.Via == "" {
		e = e.From(SourceOf(ctx))
	}
	if e.Outcome == "" {
		e.Outcome = Allowed
	}
	e.At = e.At.UTC().Truncate(time.Millisecond)
	return e
}

// Facts is the form of Before and After.
func Facts(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// Link is an entry in its place.
type Link struct {
	Seq int64 `json:"seq"`
	Entry
	Prev string `json:"prev" doc:"hash of the link before, empty for the first"`
	Hash string `json:"hash"`
}

// Head is the end of the chain; zero: there is no link.
type Head struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// LinkTo makes the link of an entry that follows a head.
func (e Entry) LinkTo(h Head) Link {
	l := Link{Seq: h.Seq + 1, Entry: e, Prev: h.Hash}
	l.Hash = l.Sum()
	return l
}

// Sum is what the hash of a link must be: the SHA-256 of its fields in the order of the
// table, each as the decimal count of its bytes, a colon, its bytes and a line feed.
func (l Link) Sum() string {
	h := sha256.New()
	for _, f := range []string{
		strconv.FormatInt(l.Seq, 10), strconv.FormatInt(thole.Millis(l.At), 10), l.Actor, l.Via, l.Login, l.Address, l.Client, string(l.OnBehalf), l.Action, l.Kind, l.ID,
		string(l.App), string(l.Project), string(l.Owner), string(l.Outcome), l.Reason, l.Before, l.After, l.Prev,
	} {
		_, _ = io.WriteString(h, strconv.Itoa(len(f))+":"+f+"\n")
	}
	return hex.EncodeToString(h.Sum(nil))
}
