-- Ids of deleted threads are never given to another one.
create table deleted_threads (
    id         text   primary key,
    user_id    text   not null,
    project_id text   not null,
    deleted_at bigint not null
);
