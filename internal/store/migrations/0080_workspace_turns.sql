-- The files each turn ended with, for forks made at it: the newest sync between
-- its end and the beginning of the next. Collection drops old rows.
create table workspace_turns (
    thread_id   text   not null,
    turn_id     text   not null,
    snapshot_id text   not null references workspace_snapshots (id),
    kept_at     bigint not null,
    primary key (thread_id, turn_id)
);

create index workspace_turns_snapshot on workspace_turns (snapshot_id);
create index workspace_turns_kept on workspace_turns (kept_at);

-- Ids rise with time, so the greatest is the newest.
insert into workspace_turns (thread_id, turn_id, snapshot_id, kept_at)
select s.thread_id, s.turn_id, max(s.id), max(s.created_at) from workspace_snapshots s
join turns t on t.thread_id = s.thread_id and t.turn_id = s.turn_id and t.outcome <> ''
group by s.thread_id, s.turn_id;
