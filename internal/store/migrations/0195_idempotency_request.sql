-- request: a sum of what the first request with the key asked for, '' in older rows.
-- holder: the process that has claimed the key and not finished.
alter table idempotency_keys add column request text not null default '';
alter table idempotency_keys add column holder text not null default '';
