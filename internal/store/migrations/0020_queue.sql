-- Runnable turns. A row is made in the transaction that starts its turn and is
-- done when the pipeline is done with it, which is after the turn is over for
-- clients: the workspace still has to be synced. Care rows (sync, stop or remove a
-- thread's executor) stand in the same line, so that they never meet a turn.
create table turn_queue (
    turn_id      text primary key, -- for care, an id of its own
    kind         text    not null check (kind in ('turn', 'sync', 'stop', 'remove')),
    thread_id    text    not null,
    user_id      text    not null,
    seq          bigint  not null, -- order of arrival within the thread
    priority     bigint  not null,
    state        text    not null check (state in ('ready', 'leased', 'parked', 'done')),
    -- head: no earlier row of this thread is open. Kept up to date, so that a
    -- claim never has to look at the rows behind the head.
    head         boolean not null,
    -- waiting: leased, but held up by a human; takes no slot.
    waiting      boolean not null,
    cancel       boolean not null,
    attempt      bigint  not null check (attempt >= 0),
    available_at bigint  not null,
    lease_token  text    not null,
    lease_owner  text    not null,
    lease_until  bigint  not null,
    last_error   text    not null,
    created_at   bigint  not null,
    done_at      bigint  not null,
    check ((state = 'leased') = (lease_token <> '')),
    check (state = 'leased' or not waiting),
    check ((state = 'done') = (done_at <> 0)),
    check (state <> 'leased' or head)
);

create index turn_queue_ready on turn_queue (priority desc, created_at, turn_id) where state = 'ready' and head and kind = 'turn';
create index turn_queue_care on turn_queue (created_at, turn_id) where state = 'ready' and head and kind <> 'turn';
create index turn_queue_leased on turn_queue (lease_until) where state = 'leased';
create unique index turn_queue_thread on turn_queue (thread_id, seq);
create unique index turn_queue_head on turn_queue (thread_id) where head and state <> 'done';
