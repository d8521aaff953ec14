package delivery

import thole "github.com/tholehq/thole"

// unitOfWork holds the batches, attempts and ledger rows that a transaction works on:
// each is read once and written once, when the transaction ends, however often
// its decisions change it. Reading a row twice returns the same pointer.
type unitOfWork struct {
	batches  rowSet[thole.BatchID, Batch]
	attempts rowSet[thole.AttemptID, Attempt]
	ledger   []Audit

	head answer[Batch]
	open answer[Attempt]
}

// answer is an answer that stays true while its row is open.
type answer[R any] struct {
	row   *R
	known bool
}

func (m *answer[R]) set(r *R) *R {
	m.row, m.known = r, true
	return r
}

// rowSet is the rows of one table, in the order they were taken up.
type rowSet[K comparable, R any] struct {
	rows  map[K]*tracked[R]
	order []*tracked[R]
}

type tracked[R any] struct {
	row          *R
	fresh, dirty bool
}

// take puts a row into the set, or returns the one that is there already.
func (p *rowSet[K, R]) take(id K, row *R) *tracked[R] {
	if h := p.rows[id]; h != nil {
		return h
	}
	if p.rows == nil {
		p.rows = map[K]*tracked[R]{}
	}
	h := &tracked[R]{row: row}
	p.rows[id] = h
	p.order = append(p.order, h)
	return h
}

// add takes up a row that does not exist yet.
func (p *rowSet[K, R]) add(id K, row *R) {
	h := p.take(id, row)
	h.fresh, h.dirty = true, true
}

// change marks a row that the set gave out.
func (p *rowSet[K, R]) change(id K, row *R) error {
	h := p.rows[id]
	if h == nil || h.row != row {
		return thole.Errorf(thole.CodeInternal, "row %v is not the one in hand", id)
	}
	h.dirty = true
	return nil
}

// put writes what changed: first the rows that exist, so that one which made
// room for a new one has done so.
func (p *rowSet[K, R]) put(update, insert func(*R) error) error {
	for _, fresh := range []bool{false, true} {
		for _, h := range p.order {
			if !h.dirty || h.fresh != fresh {
				continue
			}
			write := update
			if fresh {
				write = insert
			}
			if err := write(h.row); err != nil {
				return err
			}
			h.fresh, h.dirty = false, false
		}
	}
	return nil
}

// put writes the unit of work. Attempts refer to batches.
func (o *op) put() error {
	if err := o.putBatches(); err != nil {
		return err
	}
	if err := o.attempts.put(o.Tx.UpdateAttempt, o.Tx.InsertAttempt); err != nil {
		return err
	}
	if len(o.ledger) == 0 {
		return nil
	}
	rows := o.ledger
	o.ledger = nil
	return o.Append(rows)
}

func (o *op) putBatches() error { return o.batches.put(o.Tx.UpdateBatch, o.Tx.InsertBatch) }

func (o *op) Batch(id thole.BatchID) (*Batch, error) {
	if h := o.batches.rows[id]; h != nil {
		return h.row, nil
	}
	b, err := o.Tx.Batch(id)
	return o.track(b), err
}

func (o *op) track(b *Batch) *Batch {
	if b == nil {
		return nil
	}
	return o.batches.take(b.ID, b).row
}

func (o *op) HeadBatch(lane string) (*Batch, error) {
	if o.head.known && (o.head.row == nil || o.head.row.State != thole.BatchClosed && !o.head.row.Aside()) {
		return o.head.row, nil
	}
	if err := o.putBatches(); err != nil {
		return nil, err
	}
	b, err := o.Tx.HeadBatch(lane)
	if err != nil {
		return nil, err
	}
	return o.head.set(o.track(b)), nil
}

func (o *op) TailBatch(lane string) (*Batch, error) {
	if err := o.putBatches(); err != nil {
		return nil, err
	}
	b, err := o.Tx.TailBatch(lane)
	if err == nil && b == nil {
		o.head.set(nil)
	}
	return o.track(b), err
}

func (o *op) InsertBatch(b *Batch) error {
	o.batches.add(b.ID, b)
	if o.head.known && o.head.row == nil {
		o.head.set(b)
	}
	return nil
}

func (o *op) UpdateBatch(b *Batch) error { return o.batches.change(b.ID, b) }

func (o *op) Attempt(id thole.AttemptID) (*Attempt, error) {
	if h := o.attempts.rows[id]; h != nil {
		return h.row, nil
	}
	a, err := o.Tx.Attempt(id)
	if err != nil || a == nil {
		return nil, err
	}
	return o.attempts.take(id, a).row, nil
}

// OpenAttempt asks the store once: a lane has at most one open attempt, and here
// it is closed, or another one made.
func (o *op) OpenAttempt(lane string) (*Attempt, error) {
	if !o.open.known {
		a, err := o.Tx.OpenAttempt(lane)
		if err != nil {
			return nil, err
		}
		if a != nil {
			a = o.attempts.take(a.ID, a).row
		}
		o.open.set(a)
	}
	if a := o.open.row; a == nil || !a.State.Open() {
		return nil, nil
	}
	return o.open.row, nil
}

func (o *op) InsertAttempt(a *Attempt) error {
	o.attempts.add(a.ID, a)
	o.open.set(a)
	return nil
}

func (o *op) UpdateAttempt(a *Attempt) error { return o.attempts.change(a.ID, a) }
