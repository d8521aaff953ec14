package event

import (
	"slices"
	"strings"
	"time"
)

// Traffic is what an executor's processes exchanged with one target during a run.
type Traffic struct {
	Host        string    `json:"host"` // "" for the targets beyond those that are kept apart
	Port        int       `json:"port"`
	Address     string    `json:"address,omitempty"` // the last one dialled
	Verdict     string    `json:"verdict"`           // allowed, refused, failed
	Why         string    `json:"why,omitempty"`     // of the last refusal or failure
	Connections int64     `json:"connections"`       // begun
	Sent        int64     `json:"sent"`              // bytes
	Received    int64     `json:"received"`
	First       time.Time `json:"first"`
	Last        time.Time `json:"last"`
}

const (
	maxTraffic     = 200
	maxTrafficText = 300
)

// BoundTraffic returns the part of a list that an executor may report: as many targets as a
// proxy counts, no text beyond a refusal's, no negative numbers.
func BoundTraffic(list []Traffic) []Traffic {
	out := make([]Traffic, 0, min(len(list), maxTraffic))
	for _, t := range list[:min(len(list), maxTraffic)] {
		for _, s := range []*string{&t.Host, &t.Address, &t.Verdict, &t.Why} {
			*s = strings.ToValidUTF8((*s)[:min(len(*s), maxTrafficText)], "")
		}
		t.Connections, t.Sent, t.Received = max(t.Connections, 0), max(t.Sent, 0), max(t.Received, 0)
		out = append(out, t)
	}
	return out
}

// MergeTraffic adds the second list to the first, by target and verdict.
func MergeTraffic(a, b []Traffic) []Traffic {
	out := slices.Clone(a)
	for _, t := range b {
		i := slices.IndexFunc(out, func(o Traffic) bool { return o.Host == t.Host && o.Port == t.Port && o.Verdict == t.Verdict })
		if i < 0 {
			out = append(out, t)
			continue
		}
		o := &out[i]
		o.Address, o.Why, o.Last = t.Address, t.Why, t.Last
		o.Connections, o.Sent, o.Received = o.Connections+t.Connections, o.Sent+t.Sent, o.Received+t.Received
	}
	return out
}
