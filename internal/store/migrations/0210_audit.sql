-- Who did what, through what, from where and on whose behalf, and what was refused:
-- one chain. Each row has the sum of the one before it; the head is the last of them and
-- moves in the transaction that adds a row. Rows are never changed or removed.
create table audit_events (
    seq           bigint primary key check (seq > 0),
    at            bigint not null,
    actor         text   not null,
    via           text   not null,
    login         text   not null,
    address       text   not null,
    client        text   not null,
    on_behalf     text   not null,
    action        text   not null check (action <> ''),
    resource_kind text   not null,
    resource_id   text   not null,
    app_id        text   not null,
    project_id    text   not null,
    owner_id      text   not null,
    outcome       text   not null check (outcome in ('allowed', 'denied', 'failed')),
    reason        text   not null,
    before        text   not null,
    after         text   not null,
    prev          text   not null,
    hash          text   not null unique,
    check ((seq = 1) = (prev = ''))
);

create index audit_events_actor on audit_events (actor, seq);
create index audit_events_resource on audit_events (resource_kind, resource_id, seq);

create table audit_head (
    one  bigint primary key check (one = 1),
    seq  bigint not null check (seq >= 0),
    hash text   not null,
    check ((seq = 0) = (hash = ''))
);

insert into audit_head (one, seq, hash) values (1, 0, '');
