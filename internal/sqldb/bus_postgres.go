package sqldb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tholehq/thole/internal/backoff"
)

const (
	busChannel  = "thole"
	busMinPause = 50 * time.Millisecond
	busMaxPause = 5 * time.Second
)

// listen holds one connection of its own in LISTEN and reconnects until ctx
// ends. Each time it becomes live it wakes everybody, because notes sent while it
// was away are gone.
func (pg *postgres) listen(ctx context.Context, publish func([]note)) {
	away := backoff.Policy{Min: busMinPause, Max: busMaxPause}.Begin()
	for ctx.Err() == nil {
		err := pg.listenOnce(ctx, func(notes []note) {
			away.Reset()
			publish(notes)
		})
		if ctx.Err() != nil {
			return
		}
		pg.log.Warn("store bus lost its connection", "err", err)
		_ = away.Wait(ctx)
	}
}

func (pg *postgres) listenOnce(ctx context.Context, publish func([]note)) error {
	conn, err := pgx.ConnectConfig(ctx, pg.cfg.Copy())
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(end)
	}()
	if _, err := conn.Exec(ctx, "listen "+busChannel); err != nil {
		return err
	}
	publish([]note{{}})
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		publish(decodeNotes(n.Payload))
	}
}
