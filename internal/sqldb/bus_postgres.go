package sqldb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
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
	pause := busMinPause
	for ctx.Err() == nil {
		err := pg.listenOnce(ctx, func(notes []note) {
			pause = busMinPause
			publish(notes)
		})
		if ctx.Err() != nil {
			return
		}
		pg.log.Warn("store bus lost its connection", "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, busMaxPause)
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
