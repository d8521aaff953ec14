-- The beginnings of long outputs: their items have only the first and the last of it.
create table item_outputs (
    thread_id text   not null references threads (id) on delete cascade,
    turn_id   text   not null,
    item_id   text   not null,
    start_at  bigint not null check (start_at >= 0),
    size      bigint not null check (size > 0),
    body      text   not null,
    primary key (thread_id, turn_id, item_id, start_at)
);
create index thread_items_id on thread_items (thread_id, item_id);
