-- What a turn's time was spent on, in milliseconds as JSON: written with its outcome and once
-- more when its pipeline is done, so that it outlives the events it was counted from. '' for
-- turns of earlier versions and for those that are not over.
alter table turns add column spent text not null default '';
