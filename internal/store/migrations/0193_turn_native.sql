-- native_id: the provider session as the turn left it, which a fork at that turn goes on from.
alter table turns add column native_id text not null default '';
update turns set native_id = (select t.native_id from threads t where t.id = turns.thread_id);
