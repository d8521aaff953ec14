-- Holds on app-servers. One that is not retired owns its thread in its home.
create table attachments (
    attachment_id text primary key,
    user_id       text   not null,
    endpoint      text   not null check (endpoint <> ''), -- the Codex home
    thread_id     text   not null,                        -- '' until the foreground made it
    kind          text   not null check (kind in ('owned', 'shared', 'endpoint')),
    address       text   not null check (address <> ''),
    state         text   not null check (state in ('pending', 'live', 'detached', 'parked', 'stale', 'retired')),
    epoch         bigint not null check (epoch >= 1),
    server        text   not null, -- JSON: pid, boot id, start ticks
    client        text   not null,
    dir           text   not null,
    program       text   not null, -- the codex of an owned server
    trust         text   not null check (trust in ('strict-safe', 'trusted-all')),
    wishes        text   not null,
    startup_snapshot text not null, -- JSON, '' until the session was first seen
    last_snapshot text   not null,
    revision      bigint not null,
    note          text   not null,
    created_at    bigint not null,
    updated_at    bigint not null,
    version       bigint not null,
    check (state <> 'pending' or thread_id = ''),
    check (thread_id <> '' or state in ('pending', 'stale', 'retired'))
);
create unique index attachments_thread on attachments (user_id, endpoint, thread_id) where thread_id <> '' and state <> 'retired';
create index attachments_open on attachments (created_at) where state <> 'retired';
