-- Threads: an append-only log per thread and the rows folded from it. Every row
-- here is written in the transaction that appends the events it comes from.
create table threads (
    id           text primary key,
    app_id       text    not null references apps (id),
    project_id   text    not null references projects (id),
    user_id      text    not null references users (id),
    name         text    not null,
    preview      text    not null,
    provider     text    not null,
    dir          text    not null,
    settings     text    not null,
    native_id    text    not null,
    origin       text    not null,
    source       text    not null,
    client       text    not null,
    ephemeral    boolean not null,
    archived     boolean not null,
    forked_from  text    not null,
    parent_id    text    not null,
    created_at   bigint  not null,
    updated_at   bigint  not null,
    -- seq is the last event's; events up to floor are no longer kept.
    seq          bigint  not null check (seq > 0),
    floor        bigint  not null check (floor >= 0 and floor <= seq),
    turns        bigint  not null check (turns >= 0),
    -- Facts that the status is derived from. There is no status column.
    open_turn    text    not null,
    approvals    bigint  not null check (approvals >= 0),
    inputs       bigint  not null check (inputs >= 0),
    last_outcome text    not null check (last_outcome in ('', 'completed', 'failed', 'interrupted')),
    paused       boolean not null,
    step_seq     bigint  not null,
    usage        text    not null,
    check (open_turn <> '' or (approvals = 0 and inputs = 0)),
    check (not paused or last_outcome = 'interrupted')
);

create index threads_updated on threads (user_id, archived, updated_at, id) where not ephemeral;
create index threads_created on threads (user_id, archived, created_at, id) where not ephemeral;
create index threads_project on threads (project_id, archived, updated_at, id) where not ephemeral;
create index threads_busy on threads (id) where open_turn <> '';
create index threads_ephemeral on threads (updated_at) where ephemeral;

create table thread_events (
    thread_id   text   not null references threads (id) on delete cascade,
    seq         bigint not null check (seq > 0),
    event_id    text   not null check (event_id <> ''),
    kind        text   not null check (kind <> ''),
    turn_id     text   not null,
    executor_id text   not null,
    trace       text   not null,
    actor       text   not null,
    at          bigint not null,
    data        text   not null,
    primary key (thread_id, seq)
);

create unique index thread_events_id on thread_events (thread_id, event_id);

create table turns (
    thread_id   text    not null references threads (id) on delete cascade,
    turn_id     text    not null check (turn_id <> ''),
    number      bigint  not null check (number > 0),
    seq         bigint  not null check (seq > 0),
    input       text    not null,
    client_id   text    not null,
    actor       text    not null,
    settings    text    not null,
    phase       text    not null check (phase in ('queued', 'claimed', 'restoring', 'linking', 'preparing', 'running',
        'waiting_human', 'syncing', 'exported', 'succeeded', 'failed', 'canceled')),
    outcome     text    not null check (outcome in ('', 'completed', 'failed', 'interrupted')),
    error       text    not null,
    usage       text    not null,
    executor_id text    not null,
    trace       text    not null,
    interrupted boolean not null,
    stop        text    not null,
    deferred    text    not null,
    reply       text    not null,
    run         bigint  not null check (run >= 0),
    steers      text    not null,
    idem_key    text    not null,
    created_at  bigint  not null,
    started_at  bigint  not null,
    ended_at    bigint  not null,
    primary key (thread_id, turn_id),
    check ((outcome = '') = (phase not in ('syncing', 'exported', 'succeeded', 'failed', 'canceled'))),
    check (phase <> 'succeeded' or outcome = 'completed'),
    check (phase <> 'canceled' or outcome = 'interrupted'),
    check (phase <> 'failed' or outcome = 'failed'),
    check ((outcome = '') = (ended_at = 0)),
    check (deferred = '' or phase = 'waiting_human')
);

create unique index turns_number on turns (thread_id, number);
create unique index turns_open on turns (thread_id) where outcome = '';
create unique index turns_key on turns (thread_id, idem_key) where idem_key <> '';

create table thread_items (
    thread_id text    not null references threads (id) on delete cascade,
    item_id   text    not null check (item_id <> ''),
    turn_id   text    not null,
    seq       bigint  not null check (seq > 0),
    kind      text    not null check (kind in ('user_message', 'message', 'reasoning', 'plan', 'command', 'file_change',
        'tool', 'compaction', 'system')),
    is_open   boolean not null,
    body      text    not null,
    -- search is the lower-case text of what user and agent say, '' otherwise.
    search    text    not null,
    -- Providers promise unique ids within a turn only.
    primary key (thread_id, turn_id, item_id)
);

create unique index thread_items_seq on thread_items (thread_id, seq);
create index thread_items_turn on thread_items (thread_id, turn_id, seq);

-- Text of items in flight, in pieces. Completing the item removes them.
create table thread_drafts (
    thread_id text   not null references threads (id) on delete cascade,
    item_id   text   not null,
    stream    text   not null,
    start_at  bigint not null check (start_at >= 0),
    turn_id   text   not null,
    body      text   not null,
    primary key (thread_id, item_id, stream, start_at)
);

create table asks (
    thread_id   text   not null references threads (id) on delete cascade,
    ask_id      text   not null check (ask_id <> ''),
    turn_id     text   not null,
    kind        text   not null check (kind in ('command', 'file_change', 'permissions', 'input', 'plan', 'elicitation',
        'tool', 'auth')),
    state       text   not null check (state in ('pending', 'answered', 'expired', 'canceled')),
    body        text   not null,
    answer      text   not null,
    actor       text   not null,
    deadline    bigint not null,
    asked_at    bigint not null,
    resolved_at bigint not null,
    primary key (thread_id, ask_id),
    check ((state = 'answered') = (answer <> '')),
    check ((state = 'pending') = (resolved_at = 0))
);

create index asks_due on asks (deadline) where state = 'pending' and deadline > 0;
create index asks_pending on asks (thread_id, asked_at) where state = 'pending';

create table todos (
    thread_id text   not null references threads (id) on delete cascade,
    todo_id   text   not null,
    content   text   not null,
    state     text   not null check (state in ('todo', 'doing', 'done', 'canceled')),
    position  bigint not null,
    primary key (thread_id, todo_id)
);

create table thread_queue (
    thread_id  text   not null references threads (id) on delete cascade,
    message_id text   not null check (message_id <> ''),
    position   bigint not null,
    input      text   not null,
    client_id  text   not null,
    actor      text   not null,
    created_at bigint not null,
    primary key (thread_id, message_id)
);

-- One row per ended turn: usage is settled by the turn's end, once. It outlives
-- the thread.
create table turn_usage (
    thread_id   text   not null,
    turn_id     text   not null,
    app_id      text   not null,
    project_id  text   not null,
    user_id     text   not null,
    provider    text   not null,
    model       text   not null,
    outcome     text   not null check (outcome in ('completed', 'failed', 'interrupted')),
    input       bigint not null,
    output      bigint not null,
    reasoning   bigint not null,
    cache_read  bigint not null,
    cache_write bigint not null,
    -- cost in millionths of a dollar, -1 when nobody knows.
    cost_micros bigint not null,
    settled_at  bigint not null,
    primary key (thread_id, turn_id)
);

create index turn_usage_owner on turn_usage (app_id, project_id, user_id, settled_at);
