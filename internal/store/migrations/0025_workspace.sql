-- Snapshots of workspaces. The bytes are in the object store; these rows say
-- which of them count.
create table workspace_snapshots (
    id              text primary key,
    thread_id       text    not null, -- whose sync made it
    turn_id         text    not null,
    executor_id     text    not null,
    reason          text    not null,
    tree            text    not null check (length(tree) = 64),
    runtime_version text    not null,
    files           bigint  not null,
    bytes           bigint  not null,
    unsettled       bigint  not null,
    created_at      bigint  not null,
    left_at         bigint  not null -- when a thread last moved away from it; 0 while none did
);

create index workspace_snapshots_thread on workspace_snapshots (thread_id, created_at);
create index workspace_snapshots_left on workspace_snapshots (left_at);

-- Where each thread is. A fork begins at its parent's snapshot.
create table workspace_heads (
    thread_id   text primary key,
    snapshot_id text   not null references workspace_snapshots (id),
    updated_at  bigint not null
);

create index workspace_heads_snapshot on workspace_heads (snapshot_id);

-- The objects each snapshot needs, its tree among them.
create table workspace_refs (
    snapshot_id text   not null references workspace_snapshots (id),
    object      text   not null,
    object_key  text   not null,
    size        bigint not null,
    primary key (snapshot_id, object)
);

create index workspace_refs_key on workspace_refs (object_key);

-- Snapshots that are being read.
create table workspace_pins (
    holder      text primary key,
    snapshot_id text   not null references workspace_snapshots (id),
    until_at    bigint not null
);

create index workspace_pins_snapshot on workspace_pins (snapshot_id);

-- The runtime version an executor was made with; it keeps it for life.
create table workspace_runtimes (
    executor_id     text primary key,
    runtime_version text   not null,
    created_at      bigint not null
);
