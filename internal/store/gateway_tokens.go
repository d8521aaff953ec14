package store

import (
	"context"
	"database/sql"
	"encoding/hex"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/sqldb"
)

// GatewayTokens are the rows of what agents show to the model gateway.
type GatewayTokens struct{ db *DB }

// GatewayTokens returns the gateway's side of the store.
func (db *DB) GatewayTokens() *GatewayTokens { return &GatewayTokens{db} }

// GatewayToken is one row, by the SHA-256 of token and proof.
type GatewayToken struct {
	Token, Proof [32]byte
	Executor     thole.ExecutorID
	Thread       thole.ThreadID
	Provider     string
}

// Mint records a token, once; those of earlier starts of its executor go. CodeGone: the
// executor is not the thread's any more.
func (g *GatewayTokens) Mint(ctx context.Context, t GatewayToken) error {
	token, proof := hex.EncodeToString(t.Token[:]), hex.EncodeToString(t.Proof[:])
	there := func(tx *sqldb.Tx) (bool, error) {
		found, err := sqldb.All(tx, scanID[string], `select token_hash from gateway_tokens
			where token_hash = $1 and proof_hash = $2 and executor_id = $3 and thread_id = $4 and provider = $5`, token, proof, t.Executor, t.Thread, t.Provider)
		return len(found) > 0, err
	}
	var have bool // usually, and then nothing is written
	err := g.db.View(ctx, func(tx *sqldb.Tx) (err error) { have, err = there(tx); return err })
	if err != nil || have {
		return err
	}
	return g.db.Update(ctx, "gateway.mint", func(tx *sqldb.Tx) error {
		if have, err := there(tx); err != nil || have {
			return err
		}
		if _, err := tx.Exec(`delete from gateway_tokens where executor_id = $1 and proof_hash <> $2`, t.Executor, proof); err != nil {
			return err
		}
		ok, err := tx.ExecOne(`insert into gateway_tokens (token_hash, proof_hash, executor_id, thread_id, provider, created_at)
			select $1, $2, id, thread_id, $5, $6 from executors where id = $3 and thread_id = $4 and state <> 'deleted'`,
			token, proof, t.Executor, t.Thread, t.Provider, thole.Millis(tx.Now()))
		if err == nil && !ok {
			err = thole.Errorf(thole.CodeGone, "executor %s is not of thread %s any more", t.Executor, t.Thread)
		}
		if err != nil {
			return err
		}
		_, err = link(tx, audit.Entry{Action: "gateway.token", Kind: "executor", ID: string(t.Executor), After: audit.Facts(map[string]string{"thread": string(t.Thread), "provider": t.Provider})}.
			From(audit.Source{Actor: thole.SystemActor}))
		return err
	})
}

// forgetTokens takes an executor's tokens away, in the transaction that ends its row.
func forgetTokens(tx *sqldb.Tx, id thole.ExecutorID) error {
	_, err := tx.Exec(`delete from gateway_tokens where executor_id = $1`, id)
	return err
}

// GatewayClaim is what a token stands for while a turn is open.
type GatewayClaim struct {
	Executor thole.ExecutorID
	Thread   thole.ThreadID
	Turn     thole.TurnID
	Owner    thole.Owner
	Provider string
}

func scanClaim(rows *sql.Rows) (c GatewayClaim, err error) {
	var turn sql.NullString
	err = rows.Scan(&c.Executor, &c.Thread, &c.Provider, &c.Owner.App, &c.Owner.Project, &c.Owner.User, &turn)
	c.Turn = thole.TurnID(turn.String)
	return c, err
}

// Claim says who shows a token with a proof: CodeUnauthorized for a pair that is not
// known, CodeGone where its thread has no open turn in its executor. The open turn is the thread's own, unless it is
// known to run in another executor; before it is known to run at all it may be here
// already, because a warm executor is asked first and written down later.
func (g *GatewayTokens) Claim(ctx context.Context, token, proof [32]byte) (GatewayClaim, error) {
	var found []GatewayClaim
	err := g.db.View(ctx, func(tx *sqldb.Tx) (err error) {
		found, err = sqldb.All(tx, scanClaim, `select g.executor_id, g.thread_id, g.provider, h.app_id, h.project_id, h.user_id, t.turn_id
			from gateway_tokens g
			join executors x on x.id = g.executor_id and x.thread_id = g.thread_id and x.state <> 'deleted'
			join threads h on h.id = g.thread_id
			left join turns t on t.thread_id = g.thread_id and t.outcome = '' and x.turn_id in ('', t.turn_id)
				and (t.phase not in ('running', 'waiting_human') or t.executor_id = x.id)
			where g.token_hash = $1 and g.proof_hash = $2`, hex.EncodeToString(token[:]), hex.EncodeToString(proof[:]))
		return err
	})
	switch {
	case err != nil:
		return GatewayClaim{}, err
	case len(found) == 0:
		return GatewayClaim{}, thole.Errorf(thole.CodeUnauthorized, "unknown token of the model gateway")
	case found[0].Turn == "":
		return GatewayClaim{}, thole.Errorf(thole.CodeGone, "no turn of this token's thread is open")
	}
	return found[0], nil
}
