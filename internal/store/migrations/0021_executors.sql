-- Executors: the intent is written before anything is created, so that whatever a
-- crash leaves behind has a row or is found by its label.
create table executors (
    id              text primary key,
    thread_id       text    not null,
    turn_id         text    not null, -- set when made for one turn
    scope           text    not null check (scope in ('thread', 'turn')),
    driver          text    not null,
    state           text    not null check (state in ('creating', 'running', 'stopped', 'deleted')),
    -- restored: the workspace was restored, linked and validated; no agent code
    -- runs in an executor where it was not.
    restored        boolean not null,
    last_active_at  bigint  not null,
    stopped_at      bigint  not null,
    sync_started_at bigint  not null, -- of the last sync that succeeded or is running
    last_sync_at    bigint  not null, -- end of the last sync that succeeded
    sync_status     text    not null check (sync_status in ('idle', 'running', 'success', 'failed')),
    sync_reason     text    not null,
    sync_error      text    not null,
    snapshot        text    not null, -- what the last successful sync stored
    created_at      bigint  not null,
    updated_at      bigint  not null,
    check ((scope = 'turn') = (turn_id <> '')),
    -- nothing is deleted without a sync that began after the stop
    check (state <> 'deleted' or not restored or (sync_status = 'success' and sync_started_at >= stopped_at))
);

create unique index executors_live on executors (thread_id) where scope = 'thread' and state <> 'deleted';
create index executors_state on executors (state, last_active_at);
create index executors_stopped on executors (state, stopped_at);
