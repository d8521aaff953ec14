-- Who has the token of a share link may read one thread until it expires. Only the sum of the
-- token is kept.
create table share_links (
    token_hash text primary key,
    id         text   not null unique,
    thread_id  text   not null references threads (id) on delete cascade,
    user_id    text   not null references users (id),
    created_at bigint not null,
    seen_at    bigint not null,
    expires_at bigint not null check (expires_at > created_at)
);
create index share_links_user on share_links (user_id, created_at);
create index share_links_thread on share_links (thread_id);
create index share_links_expiry on share_links (expires_at);
