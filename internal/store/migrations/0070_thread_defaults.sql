-- What a user's new threads start with where their maker does not say; '' leaves
-- the choice to the server.
create table thread_defaults (
    user_id  text primary key references users (id),
    provider text not null,
    model    text not null,
    effort   text not null
);
