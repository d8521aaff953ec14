-- Facts about the store as a whole, one value for each name: its id, and where it came
-- from when it was moved.
create table store_facts (
    name  text primary key,
    value text not null
);

-- The servers that have used this store. The one that is alive renews its heartbeat, by the
-- database's time; a row stays after its end until the same home joins again.
create table servers (
    id           text primary key, -- of the home, for good
    place        text    not null, -- machine and directory of the home
    run          text    not null, -- of the process: a later one takes the row over
    address      text    not null, -- where its page listens
    version      text    not null,
    orphan_ms    bigint  not null, -- how long its executors outlive it
    joined_at    bigint  not null,
    heartbeat_at bigint  not null,
    departed     boolean not null  -- it left, and did not die
);
