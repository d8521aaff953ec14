package relay

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"
)

const stream = "11111111-2222-4333-8444-555555555555"

func frames() []*Frame {
	return []*Frame{
		Resume(stream), Reset(stream, ReasonProtocol), Handshake(stream, []byte("hello")),
		{Version: 1, StreamID: stream, Kind: KindData, Seq: 7, SegmentCount: 1, Payload: []byte{0, 1}},
		{Version: 1, StreamID: stream, Kind: KindAck, Ack: 1, AckBits: 1 << 31},
		{Version: 1, StreamID: stream, Kind: KindHeartbeat, Traceparent: "00-1", Tracestate: "a=b"},
		{Version: 1, StreamID: stream, Kind: KindResume, NextSeq: 1<<32 - 1},
	}
}

func TestFrames(t *testing.T) {
	for _, f := range frames() {
		got, err := Parse(f.Append(nil))
		if err != nil || !reflect.DeepEqual(got, f) {
			t.Errorf("%+v: %+v, %v", f, got, err)
		}
	}
	data := append(AppendData([]byte{}, stream, 7, 2), 0, 1)
	if want := frames()[3].Append(nil); !bytes.Equal(data, want) {
		t.Errorf("AppendData %x, want %x", data, want)
	}
	// As the real executor sends it.
	if got := hex.EncodeToString(Resume("s").Append(nil)); got != "08011201733a00" {
		t.Error(got)
	}
}

func TestRefusedFrames(t *testing.T) {
	valid := frames()[3].Append(nil)
	for name, raw := range map[string][]byte{
		"empty":                {},
		"no body":              {0x08, 1, 0x12, 1, 's'},
		"no stream":            (&Frame{Version: 1, Kind: KindAck}).Append(nil),
		"blank stream":         (&Frame{Version: 1, StreamID: " ", Kind: KindAck}).Append(nil),
		"version 2":            (&Frame{Version: 2, StreamID: "s", Kind: KindAck}).Append(nil),
		"two segments":         (&Frame{Version: 1, StreamID: "s", Kind: KindData, SegmentCount: 2, Payload: []byte("x")}).Append(nil),
		"no segment":           (&Frame{Version: 1, StreamID: "s", Kind: KindData, Payload: []byte("x")}).Append(nil),
		"second segment":       (&Frame{Version: 1, StreamID: "s", Kind: KindData, SegmentIndex: 1, SegmentCount: 1, Payload: []byte("x")}).Append(nil),
		"no payload":           (&Frame{Version: 1, StreamID: "s", Kind: KindData, SegmentCount: 1}).Append(nil),
		"empty handshake":      Handshake("s", nil).Append(nil),
		"reset without reason": Reset("s", "").Append(nil),
		"two bodies":           append(bytes.Clone(valid), Resume("s").Append(nil)[5:]...),
		"two stream ids":       append(bytes.Clone(valid), 0x12, 1, 's'),
		"not UTF-8":            {0x08, 1, 0x12, 1, 0xff, 0x32, 0},
		"length over the rest": {0x08, 1, 0x12, 9, 's', 0x32, 0},
		"wrong wire type":      {0x0d, 1, 0, 0, 0, 0x12, 1, 's', 0x32, 0},
		"number over 32 bits":  {0x08, 0x81, 0x80, 0x80, 0x80, 0x10, 0x12, 1, 's', 0x32, 0},
		"group":                {0x08, 1, 0x12, 1, 's', 0x32, 0, 0x6b, 0x6c},
		"too large":            Handshake("s", make([]byte, MaxFrame)).Append(nil),
	} {
		if f, err := Parse(raw); err == nil {
			t.Errorf("%s: taken as %+v", name, f)
		} else if strings.Contains(err.Error(), "%!") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, fr := range frames() {
		f.Add(fr.Append(nil))
	}
	f.Add([]byte{0x08, 1, 0x12, 9, 's', 0x32, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := Parse(raw)
		if err != nil {
			return
		}
		again, err := Parse(got.Append(nil))
		if err != nil || !reflect.DeepEqual(got, again) {
			t.Fatalf("%+v, then %+v, %v", got, again, err)
		}
	})
}
