-- How people and scripts prove who they are over HTTP. Secrets are kept as
-- SHA-256 sums only: each has 256 random bits, so a slow hash would add nothing.
create table login_codes (
    code_hash  text primary key,
    user_id    text   not null references users (id),
    expires_at bigint not null check (expires_at > 0)
);

create table web_sessions (
    session_hash text primary key,
    user_id      text   not null references users (id),
    client       text   not null,
    created_at   bigint not null,
    seen_at      bigint not null,
    expires_at   bigint not null check (expires_at > created_at)
);

create index web_sessions_user on web_sessions (user_id);
create index web_sessions_expiry on web_sessions (expires_at);

-- expires_at 0: never.
create table api_tokens (
    token_hash text primary key,
    id         text   not null unique,
    user_id    text   not null references users (id),
    name       text   not null check (name <> ''),
    created_at bigint not null,
    seen_at    bigint not null,
    expires_at bigint not null
);

create index api_tokens_user on api_tokens (user_id, created_at);

-- What a create with an Idempotency-Key made, where the made thing itself cannot
-- carry the key. result is '' until the request has finished.
create table idempotency_keys (
    user_id    text   not null references users (id),
    scope      text   not null,
    idem_key   text   not null,
    result     text   not null,
    created_at bigint not null,
    primary key (user_id, scope, idem_key)
);

create index idempotency_keys_age on idempotency_keys (created_at);

-- A run is asked for by its own id; a fork shares its parent's.
create index turns_id on turns (turn_id);
