package noise

import (
	"bytes"
	"crypto/mlkem"
	"crypto/mlkem/mlkemtest"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"testing"
)

var prologue = Prologue{Environment: "env", Registration: "reg", Stream: "11111111-2222-4333-8444-555555555555"}

func fixed(t testing.TB, fill byte) *Identity {
	t.Helper()
	id, err := ParseIdentity(bytes.Repeat([]byte{fill}, seedSize))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func fixedEphemeral(t testing.TB, fill byte) ephemeral {
	t.Helper()
	return ephemeral{fixed(t, fill), func(k *mlkem.EncapsulationKey768) ([]byte, []byte) {
		secret, ct, err := mlkemtest.Encapsulate768(k, bytes.Repeat([]byte{fill + 1}, 32))
		if err != nil {
			t.Fatal(err)
		}
		return secret, ct
	}}
}

// TestGolden freezes a handshake with known randomness. That it is the right one is
// shown by the real peer (test/conformance/exec).
func TestGolden(t *testing.T) {
	i, first, err := newInitiator(fixed(t, 1), fixed(t, 2).Public(), prologue, []byte("authorization"), fixedEphemeral(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewResponder(fixed(t, 2), prologue, first)
	if err != nil {
		t.Fatal(err)
	}
	second, send, _, err := r.accept(fixedEphemeral(t, 5))
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != Message1Size+len("authorization") || Message1Size != 3568 || len(second) != Message2Size || Message2Size != 3424 {
		t.Fatalf("messages of %d and %d bytes", len(first), len(second))
	}
	record, err := send.Seal(nil, []byte("record"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := i.Finish(second); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		got  []byte
		want string
	}{
		{"first", first, goldenFirst}, {"second", second, goldenSecond}, {"record", record, goldenRecord},
	} {
		sum := sha256.Sum256(c.got)
		if got := hex.EncodeToString(sum[:]); got != c.want {
			t.Errorf("%s message is %s, want %s", c.what, got, c.want)
		}
	}
}

func handshake(t testing.TB) (initiatorSend, initiatorReceive, responderSend, responderReceive *Cipher) {
	t.Helper()
	own, other := fixed(t, 1), fixed(t, 2)
	i, first, err := NewInitiator(own, other.Public(), prologue, []byte("payload"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewResponder(other, prologue, first)
	if err != nil {
		t.Fatal(err)
	}
	if r.Peer.Fingerprint() != own.Public().Fingerprint() || string(r.Payload) != "payload" {
		t.Fatalf("peer %s, payload %q", r.Peer.Fingerprint(), r.Payload)
	}
	second, rs, rr, err := r.Accept()
	if err != nil {
		t.Fatal(err)
	}
	is, ir, err := i.Finish(second)
	if err != nil {
		t.Fatal(err)
	}
	return is, ir, rs, rr
}

func TestRecords(t *testing.T) {
	is, ir, rs, rr := handshake(t)
	for _, dir := range []struct{ from, to *Cipher }{{is, rr}, {rs, ir}} {
		for _, text := range []string{"one", "two", ""} {
			sealed, err := dir.from.Seal(nil, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := dir.to.Open(nil, sealed); err != nil || string(got) != text {
				t.Fatalf("%q, %v", got, err)
			}
			if _, err := dir.to.Open(nil, sealed); err == nil {
				t.Fatal("a record was taken twice")
			}
			dir.to.n-- // a failed one would have ended the stream
		}
	}
	is.n = math.MaxUint64 - 1
	if _, err := is.Seal(nil, nil); !errors.Is(err, ErrExhausted) {
		t.Fatal(err)
	}
}

// TestRefusals: keys, prologues and messages that are not the right ones.
func TestRefusals(t *testing.T) {
	own, other, third := fixed(t, 1), fixed(t, 2), fixed(t, 3)
	_, first, err := NewInitiator(own, other.Public(), prologue, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewResponder(third, prologue, first); !errors.Is(err, ErrHandshake) {
		t.Errorf("another executor read the message: %v", err)
	}
	for _, p := range []Prologue{{"other", "reg", prologue.Stream}, {"env", "other", prologue.Stream}, {"env", "reg", "other"}, {"envr", "eg", prologue.Stream}} {
		if _, err := NewResponder(other, p, first); !errors.Is(err, ErrHandshake) {
			t.Errorf("%+v was taken: %v", p, err)
		}
	}
	for at := 0; at < len(first); at += 97 {
		bad := bytes.Clone(first)
		bad[at] ^= 1
		if _, err := NewResponder(other, prologue, bad); !errors.Is(err, ErrHandshake) {
			t.Errorf("byte %d changed: %v", at, err)
		}
	}
	for _, n := range []int{0, 1, Message1Size - 1, len(first) - 1} {
		if n < len(first) {
			if _, err := NewResponder(other, prologue, first[:n]); !errors.Is(err, ErrHandshake) {
				t.Errorf("%d bytes: %v", n, err)
			}
		}
	}
	for at := 0; at < Message2Size; at += 97 {
		i, first, _ := NewInitiator(own, other.Public(), prologue, nil)
		r, err := NewResponder(other, prologue, first)
		if err != nil {
			t.Fatal(err)
		}
		second, _, _, err := r.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := r.Accept(); err == nil {
			t.Fatal("accepted twice")
		}
		second[at] ^= 1
		if _, _, err := i.Finish(second); !errors.Is(err, ErrHandshake) {
			t.Errorf("byte %d of the answer changed: %v", at, err)
		}
	}
	// A peer with the executor's registration but not its key cannot answer.
	i, first, _ := NewInitiator(own, other.Public(), prologue, nil)
	if r, err := NewResponder(third, prologue, first); err == nil {
		second, _, _, _ := r.Accept()
		if _, _, err := i.Finish(second); err == nil {
			t.Error("an impostor was believed")
		}
	}
	if _, err := ParsePublicKey(make([]byte, 31), other.Public().MLKEM768()); err == nil {
		t.Error("short X25519 key")
	}
	if _, err := ParsePublicKey(make([]byte, 32), make([]byte, 10)); err == nil {
		t.Error("short ML-KEM key")
	}
	zero, err := ParsePublicKey(make([]byte, 32), other.Public().MLKEM768())
	if err == nil {
		if _, _, err := NewInitiator(own, zero, prologue, nil); err == nil {
			t.Error("a key on which everybody agrees was used")
		}
	}
}

func TestFingerprints(t *testing.T) {
	f := fixed(t, 1).Public().Fingerprint()
	if got, err := ParseFingerprint(" " + f[:7] + string(bytes.ToUpper([]byte(f[7:]))) + "\n"); err != nil || got != f {
		t.Fatalf("%s, %v", got, err)
	}
	for _, bad := range []string{"", f[7:], f[:70], "sha256:zz"} {
		if _, err := ParseFingerprint(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzFirstMessage(f *testing.F) {
	own, other := fixed(f, 1), fixed(f, 2)
	_, first, err := newInitiator(own, other.Public(), prologue, []byte("p"), fixedEphemeral(f, 3))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(first)
	f.Add(first[:Message1Size])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, msg []byte) {
		if _, err := NewResponder(other, prologue, msg); err == nil && !bytes.Equal(msg, first) {
			t.Fatal("a message that nobody made was taken")
		}
	})
}

func FuzzSecondMessage(f *testing.F) {
	own, other := fixed(f, 1), fixed(f, 2)
	begin := func(t testing.TB) *Initiator {
		i, _, err := newInitiator(own, other.Public(), prologue, nil, fixedEphemeral(t, 3))
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	_, first, _ := newInitiator(own, other.Public(), prologue, nil, fixedEphemeral(f, 3))
	r, err := NewResponder(other, prologue, first)
	if err != nil {
		f.Fatal(err)
	}
	second, _, _, err := r.accept(fixedEphemeral(f, 5))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(second)
	f.Add(make([]byte, Message2Size))
	f.Fuzz(func(t *testing.T, msg []byte) {
		if _, _, err := begin(t).Finish(msg); err == nil && !bytes.Equal(msg, second) {
			t.Fatal("a message that nobody made was taken")
		}
	})
}

func BenchmarkRecords(b *testing.B) {
	is, _, _, rr := handshake(b)
	plain, sealed, opened := make([]byte, 61440), []byte(nil), []byte(nil)
	b.SetBytes(int64(len(plain)))
	for b.Loop() {
		var err error
		if sealed, err = is.Seal(sealed[:0], plain); err != nil {
			b.Fatal(err)
		}
		if opened, err = rr.Open(opened[:0], sealed); err != nil {
			b.Fatal(err)
		}
	}
}

const (
	goldenFirst  = "a83c4b85ce8c06a6f725c51405c6622726593c41516f082d3a063317e8e72e91"
	goldenSecond = "70de1fc9e6d40800109c4e1ea18c22c9a8e8926dc37c2166c751fdbfa78ed802"
	goldenRecord = "0365035f155c0f4be75ece73f33b367a122617629148d81edea72f2dba99635e"
)
