package jsonrpc

// fifo is a ring that grows; its owner bounds it.
type fifo[T any] struct {
	buf  []T // length is a power of two
	head int
	n    int
}

func (q *fifo[T]) len() int { return q.n }

func (q *fifo[T]) push(v T) {
	if q.n == len(q.buf) {
		grown := make([]T, max(8, 2*len(q.buf)))
		for i := range q.n {
			grown[i] = q.buf[(q.head+i)&(len(q.buf)-1)]
		}
		q.buf, q.head = grown, 0
	}
	q.buf[(q.head+q.n)&(len(q.buf)-1)] = v
	q.n++
}

func (q *fifo[T]) front() T { return q.buf[q.head] }

func (q *fifo[T]) pop() T {
	var zero T
	v := q.buf[q.head]
	q.buf[q.head] = zero
	q.head = (q.head + 1) & (len(q.buf) - 1)
	if q.n--; q.n == 0 && len(q.buf) > 256 {
		q.buf, q.head = nil, 0 // a burst is over; do not keep its ring
	}
	return v
}
