-- Result files in the home. held: a running job or an open batch refers to it.
create table artifacts (
    artifact_id    text primary key,
    job_id         text    not null,
    app_id         text    not null,
    project_id     text    not null,
    user_id        text    not null,
    path           text    not null,
    manifest       text    not null,
    name           text    not null,
    content_type   text    not null,
    size_bytes     bigint  not null check (size_bytes >= 0),
    sha256         text    not null check (length(sha256) = 64),
    created_at     bigint  not null,
    held           boolean not null,
    last_closed_at bigint  not null,
    pin_until      bigint  not null,
    removed_at     bigint  not null,
    version        bigint  not null,
    check (removed_at = 0 or not held)
);
create index artifacts_free on artifacts (created_at, artifact_id) where not held and removed_at = 0;

-- Short permissions to read an artifact in chunks.
create table artifact_leases (
    lease_id    text primary key,
    artifact_id text   not null references artifacts (artifact_id),
    user_id     text   not null,
    deadline    bigint not null,
    revoked_at  bigint not null
);
create index artifact_leases_deadline on artifact_leases (deadline);
