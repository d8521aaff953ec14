-- Secrets, sealed. A data key for each owner, wrapped by a key that is not in the
-- database; values are sealed with it and bound to their row. Bytes are base64.
create table vault_keys (
    id         text primary key,
    owner_kind text   not null check (owner_kind in ('user', 'project', 'app', 'platform')),
    owner_id   text   not null,
    kek_id     text   not null check (kek_id <> ''),
    wrapped    text   not null check (wrapped <> ''),
    created_at bigint not null,
    unique (owner_kind, owner_id),
    check ((owner_kind = 'platform') = (owner_id = ''))
);

-- A revoked item has no value and no key any more; its trail stays.
create table vault_items (
    id           text primary key,
    owner_kind   text   not null check (owner_kind in ('user', 'project', 'app', 'platform')),
    owner_id     text   not null,
    name         text   not null check (name <> ''),
    kind         text   not null check (kind in ('provider_auth', 'git', 'mcp', 'env')),
    provider     text   not null,
    state        text   not null check (state in ('active', 'revoked', 'needs_login')),
    etag         text   not null check (etag <> ''),
    version      bigint not null check (version > 0),
    fingerprint  text   not null,
    key_id       text references vault_keys (id),
    nonce        text   not null,
    ciphertext   text   not null,
    created_by   text   not null,
    created_at   bigint not null,
    updated_at   bigint not null,
    last_used_at bigint not null,
    expires_at   bigint not null,
    check ((owner_kind = 'platform') = (owner_id = '')),
    check (kind <> 'provider_auth' or provider <> ''),
    check (state <> 'needs_login' or kind = 'provider_auth'),
    check ((state = 'revoked') = (key_id is null)),
    check ((state = 'revoked') = (ciphertext = ''))
);

create unique index vault_items_name on vault_items (owner_kind, owner_id, name) where state <> 'revoked';
create index vault_items_owner on vault_items (owner_kind, owner_id, created_at);
create index vault_items_key on vault_items (key_id) where key_id is not null;

-- One row for each turn, executor and purpose.
create table vault_uses (
    item_id     text   not null references vault_items (id),
    thread_id   text   not null,
    turn_id     text   not null,
    executor_id text   not null,
    purpose     text   not null check (purpose <> ''),
    at          bigint not null,
    primary key (item_id, thread_id, turn_id, executor_id, purpose)
);

create index vault_uses_at on vault_uses (item_id, at);

-- Who changed an item or wrapped a data key again. Append-only.
create table vault_changes (
    subject    text   not null,
    seq        bigint not null,
    at         bigint not null,
    actor      text   not null,
    via        text   not null,
    client     text   not null,
    event      text   not null check (event <> ''),
    from_state text   not null,
    to_state   text   not null,
    version    bigint not null,
    primary key (subject, seq)
);
