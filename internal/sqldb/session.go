package sqldb

import (
	"context"
	"database/sql"
)

// maxStatements bounds a connection's cache. Queries are constants, so it is
// reached only by a query text that is built, and then clearing is enough.
const maxStatements = 512

// session is one SQLite connection with its prepared statements. It is used by
// one goroutine at a time.
type session struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

func newSession(conn *sql.Conn) *session {
	return &session{conn: conn, stmts: make(map[string]*sql.Stmt)}
}

func (s *session) stmt(query string) (*sql.Stmt, error) {
	if st, ok := s.stmts[query]; ok {
		return st, nil
	}
	if len(s.stmts) >= maxStatements {
		s.forget()
	}
	st, err := s.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	s.stmts[query] = st
	return st, nil
}

func (s *session) exec(ctx context.Context, query string, args []any) (int64, error) {
	st, err := s.stmt(query) //nolint:sqlclosecheck // kept for the next time
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (s *session) query(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	st, err := s.stmt(query) //nolint:sqlclosecheck // kept for the next time
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}

// run executes a statement of our own (begin, savepoint, commit).
func (s *session) run(query string) error {
	_, err := s.exec(context.Background(), query, nil)
	return err
}

func (s *session) forget() {
	for q, st := range s.stmts {
		st.Close()
		delete(s.stmts, q)
	}
}

func (s *session) close() error {
	s.forget()
	return s.conn.Close()
}
