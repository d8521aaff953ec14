-- Tokens of the model gateway. Only hashes are kept: a token counts with the proof of the
-- start of the executor that it was made for, and while a turn of its thread is open.
create table gateway_tokens (
    token_hash  text primary key check (token_hash <> ''),
    proof_hash  text   not null check (proof_hash <> ''),
    executor_id text   not null references executors (id),
    thread_id   text   not null,
    provider    text   not null check (provider <> ''),
    created_at  bigint not null
);

create index gateway_tokens_executor on gateway_tokens (executor_id);
