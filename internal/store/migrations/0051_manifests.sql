-- Runtime manifests that were in use. A version never changes: executors made
-- with it live by it after the file it came from is another one.
create table workspace_manifests (
    app_id          text   not null,
    runtime_version text   not null,
    body            text   not null,
    created_at      bigint not null,
    primary key (app_id, runtime_version)
);
