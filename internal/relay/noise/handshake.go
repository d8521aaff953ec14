package noise

import (
	"crypto/ecdh"
	"crypto/mlkem"
	"fmt"
)

// ephemeral is what a side makes for one handshake. Tests fix it.
type ephemeral struct {
	id *Identity
	// encapsulate makes a secret for a key and the ciphertext from which the key's owner gets it.
	encapsulate func(*mlkem.EncapsulationKey768) (secret, ct []byte)
}

func newEphemeral() (ephemeral, error) {
	id, err := NewIdentity()
	return ephemeral{id, (*mlkem.EncapsulationKey768).Encapsulate}, err
}

// Initiator is the harness's side. Its caller has the executor's key already.
type Initiator struct {
	s   *symmetric
	own *Identity
	e   ephemeral
}

// NewInitiator makes the first message, with a payload that only the owner of the
// responder's key can read.
func NewInitiator(own *Identity, responder PublicKey, p Prologue, payload []byte) (*Initiator, []byte, error) {
	e, err := newEphemeral()
	if err != nil {
		return nil, nil, err
	}
	return newInitiator(own, responder, p, payload, e)
}

func newInitiator(own *Identity, responder PublicKey, p Prologue, payload []byte, e ephemeral) (*Initiator, []byte, error) {
	s := newSymmetric(p, responder)
	secret, ct := e.encapsulate(responder.kem)
	msg := s.seal(make([]byte, 0, Message1Size+len(payload)), ct)
	if err := s.mixKey(secret, true); err != nil {
		return nil, nil, err
	}
	msg = s.clear(msg, e.id.Public())
	if err := s.mixDH(e.id.dh, responder.dh); err != nil {
		return nil, nil, err
	}
	pub := own.Public()
	msg = s.seal(msg, pub.X25519())
	msg = s.seal(msg, pub.MLKEM768())
	if err := s.mixDH(own.dh, responder.dh); err != nil {
		return nil, nil, err
	}
	return &Initiator{s, own, e}, s.seal(msg, payload), nil
}

// Finish reads the second message. A nil error means that the peer has the private
// key that the caller expected.
func (i *Initiator) Finish(msg []byte) (send, receive *Cipher, err error) {
	if len(msg) != Message2Size || i.s == nil {
		return nil, nil, ErrHandshake
	}
	s := i.s
	i.s = nil
	take := taker(msg)
	ct := take(ctSize)
	s.mixHash(ct)
	secret, err := i.e.id.kem.Decapsulate(ct)
	if err == nil {
		err = s.mixKey(secret, false)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrHandshake, err)
	}
	if ct, err = s.open(take(ctSize + tagSize)); err == nil {
		secret, err = i.own.kem.Decapsulate(ct)
	}
	if err == nil {
		err = s.mixKey(secret, true)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrHandshake, err)
	}
	peer, err := s.peer(take(dhSize), take(kemSize))
	if err == nil {
		err = s.mixDH(i.e.id.dh, peer.dh)
	}
	if err == nil {
		err = s.mixDH(i.own.dh, peer.dh)
	}
	if err == nil {
		_, err = s.open(take(tagSize))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrHandshake, err)
	}
	return s.split()
}

// Responder is the executor's side, after the first message. Peer and Payload are
// proven to be of the owner of Peer's private key; whether that one may come in is
// for the caller to find out before Accept.
type Responder struct {
	Peer    PublicKey
	Payload []byte
	s       *symmetric
	e       *ecdh.PublicKey
	ekem    *mlkem.EncapsulationKey768
}

// NewResponder reads the first message.
func NewResponder(own *Identity, p Prologue, msg []byte) (*Responder, error) {
	if len(msg) < Message1Size {
		return nil, ErrHandshake
	}
	s := newSymmetric(p, own.Public())
	take := taker(msg)
	ct, err := s.open(take(ctSize))
	if err != nil {
		return nil, ErrHandshake
	}
	secret, err := own.kem.Decapsulate(ct)
	if err == nil {
		err = s.mixKey(secret, true)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHandshake, err)
	}
	e, err := s.peer(take(dhSize), take(kemSize))
	if err == nil {
		err = s.mixDH(own.dh, e.dh)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHandshake, err)
	}
	x, err := s.open(take(dhSize + tagSize))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHandshake, err)
	}
	kem, err := s.open(take(kemSize + tagSize))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHandshake, err)
	}
	peer, err := ParsePublicKey(x, kem)
	if err == nil {
		err = s.mixDH(own.dh, peer.dh)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHandshake, err)
	}
	payload, err := s.open(take(len(msg) - Message1Size + tagSize))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHandshake, err)
	}
	return &Responder{Peer: peer, Payload: payload, s: s, e: e.dh, ekem: e.kem}, nil
}

// Accept makes the second message.
func (r *Responder) Accept() (msg []byte, send, receive *Cipher, err error) {
	e, err := newEphemeral()
	if err != nil {
		return nil, nil, nil, err
	}
	return r.accept(e)
}

func (r *Responder) accept(e ephemeral) (msg []byte, send, receive *Cipher, err error) {
	if r.s == nil {
		return nil, nil, nil, ErrHandshake
	}
	s := r.s
	r.s = nil
	secret, ct := e.encapsulate(r.ekem)
	msg = append(make([]byte, 0, Message2Size), ct...)
	s.mixHash(ct)
	if err := s.mixKey(secret, false); err != nil {
		return nil, nil, nil, err
	}
	secret, ct = e.encapsulate(r.Peer.kem)
	msg = s.seal(msg, ct)
	if err := s.mixKey(secret, true); err != nil {
		return nil, nil, nil, err
	}
	msg = s.clear(msg, e.id.Public())
	if err := s.mixDH(e.id.dh, r.e); err != nil {
		return nil, nil, nil, err
	}
	if err := s.mixDH(e.id.dh, r.Peer.dh); err != nil {
		return nil, nil, nil, err
	}
	msg = s.seal(msg, nil)
	receive, send, err = s.split()
	return msg, send, receive, err
}

// mixDH takes in what two keys agree on. A key with which everybody agrees on the
// same is an error.
func (s *symmetric) mixDH(own *ecdh.PrivateKey, peer *ecdh.PublicKey) error {
	secret, err := own.ECDH(peer)
	if err != nil {
		return err
	}
	return s.mixKey(secret, false)
}

// clear appends a key that the peer needs before it can decrypt.
func (s *symmetric) clear(msg []byte, k PublicKey) []byte {
	x, kem := k.X25519(), k.MLKEM768()
	s.mixHash(x)
	s.mixHash(kem)
	return append(append(msg, x...), kem...)
}

// peer reads what clear appended.
func (s *symmetric) peer(x, kem []byte) (PublicKey, error) {
	s.mixHash(x)
	s.mixHash(kem)
	return ParsePublicKey(x, kem)
}

// taker cuts a message, whose length was checked, into its parts.
func taker(msg []byte) func(n int) []byte {
	return func(n int) []byte {
		part := msg[:n:n]
		msg = msg[n:]
		return part
	}
}
