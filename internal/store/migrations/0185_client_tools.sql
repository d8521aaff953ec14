-- tools: those that the thread's client runs itself, as JSON; '' for none. They never change.
alter table threads add column tools text not null default '';
-- output_schema: the JSON schema of the turn's last message, '' for any text.
alter table turns add column output_schema text not null default '';
