-- Where an executor is: the local driver of one server's home. Empty: of the home that has
-- this store, which is the only one that reaches it.
alter table executors add column engine text not null default '';
create index executors_engine on executors (engine, id) where state <> 'deleted';
