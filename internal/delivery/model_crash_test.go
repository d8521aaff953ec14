package delivery_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/sqldb"
)

var errDied = errors.New("the process died")

// dying is a store whose process ends in a chosen transaction: before its commit,
// so that nothing of it remains, or after it, so that only the answer is lost.
type dying struct {
	delivery.Store
	in   int // transactions until then; negative: none
	kept bool
}

func (s *dying) Update(ctx context.Context, step string, fn func(delivery.Tx) error) error {
	s.in--
	if s.in != -1 {
		return s.Store.Update(ctx, step, fn)
	}
	err := s.Store.Update(ctx, step, func(tx delivery.Tx) error {
		if err := fn(tx); err != nil || s.kept {
			return err
		}
		return errDied
	})
	if err == nil {
		return errDied
	}
	return err
}

// doom decides where in the coming step the process dies, if at all.
func (p *player) doom() {
	p.store.in = -1
	if !p.back && p.pick(4) == 0 {
		p.store.in, p.store.kept = p.pick(3), p.pick(2) == 0
	}
}

// call makes one call. A process that dies before the commit must have changed
// nothing, and its successor makes the call again; lost means that the call had
// its effect and nobody learned of it.
func (p *player) call(f func() error) (lost bool, err error) {
	if err = f(); !errors.Is(err, errDied) {
		return false, err
	}
	p.restart()
	fmt.Fprintf(&p.trace, "died, kept=%v\n", p.store.kept)
	if p.store.kept {
		return true, nil
	}
	if got, want := p.text(), p.m.text(); got != want {
		p.rt.Fatalf("a call that was not committed left:\n%s\nwant:\n%s", got, want)
	}
	return false, f()
}

// insist makes a call that may be made again after a lost answer, as every command
// of a client may.
func (p *player) insist(f func() error) error {
	lost, err := p.call(f)
	if lost {
		return f()
	}
	return err
}

// text is the stored state in the form it is compared in.
func (p *player) text() string {
	var lanes [][2]string
	batches, jobs, attempts, bindings := map[string][][2]string{}, map[string][]string{}, map[string]string{}, map[string]string{}
	p.ok(p.db.View(ctx, func(tx *sqldb.Tx) error {
		return errors.Join(
			each(tx, "select lane_id, thread_id, ticket <> 0 from delivery_lanes order by thread_id", func(c ...string) {
				lanes = append(lanes, [2]string{c[0], fmt.Sprintf("%s ready=%v\n", c[1], c[2] == "true" || c[2] == "1")})
			}),
			each(tx, `select lane_id, batch_id, state || ' held=' || case replay_policy when 'manual_resolution_only' then 'true' else 'false' end || ' ' || close_reason || ' n=' || attempt_count ||
				case when state in ('queued', 'closed') then '' else ' until=' || window_ends_at end from delivery_batches order by seq`, func(c ...string) {
				batches[c[0]] = append(batches[c[0]], [2]string{c[1], c[2]})
			}),
			each(tx, "select batch_id, job_id, '' from delivery_jobs where batch_id <> '' order by batch_order", func(c ...string) {
				jobs[c[0]] = append(jobs[c[0]], c[1])
			}),
			each(tx, "select batch_id, generation || ':' || state, '' from delivery_attempts order by generation", func(c ...string) {
				attempts[c[0]] += " " + c[1]
			}),
			each(tx, "select lane_id, state || ' ' || armed_generation || ' ' || case when quiesced_at = 0 then '-' else 'quiet' end, '' from desktop_bindings", func(c ...string) {
				bindings[c[0]] = "  heartbeat " + c[1] + "\n"
			}),
		)
	}))
	var w strings.Builder
	for _, l := range lanes {
		w.WriteString(l[1])
		w.WriteString(bindings[l[0]])
		for _, b := range batches[l[0]] {
			fmt.Fprintf(&w, "  %v %s%s\n", jobs[b[0]], b[1], attempts[b[0]])
		}
	}
	return w.String()
}

// dump is every stored row with every column, the ledger included.
func (p *player) dump() string {
	var w strings.Builder
	p.ok(p.db.View(ctx, func(tx *sqldb.Tx) error {
		for _, from := range []string{
			"delivery_scopes order by target", "delivery_lanes order by lane_id", "delivery_jobs order by job_id", "delivery_batches order by batch_id",
			"delivery_attempts order by attempt_id", "desktop_bindings order by binding_id", "desktop_installation order by name", "delivery_audit order by lane_id, seq",
		} {
			fmt.Fprintln(&w, from)
			if err := each(tx, "select * from "+from, func(c ...string) { fmt.Fprintln(&w, c) }); err != nil {
				return err
			}
		}
		return nil
	}))
	return w.String()
}

func each(tx *sqldb.Tx, query string, visit func(...string)) error {
	_, err := sqldb.All(tx, func(rows *sql.Rows) (struct{}, error) {
		names, err := rows.Columns()
		if err != nil {
			return struct{}{}, err
		}
		cols, dest := make([]string, len(names)), make([]any, len(names))
		for i := range cols {
			dest[i] = &cols[i]
		}
		if err := rows.Scan(dest...); err != nil {
			return struct{}{}, err
		}
		visit(cols...)
		return struct{}{}, nil
	}, query)
	return err
}
